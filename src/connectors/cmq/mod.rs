//! Tencent CMQ, also as the CMQ edition of TDMQ: source and sink, over either of its protocols.

pub mod signature;
pub mod wire;
