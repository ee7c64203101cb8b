//! Apache RocketMQ 4.x and 5.x, over the remoting protocol that both speak.

pub mod client;
