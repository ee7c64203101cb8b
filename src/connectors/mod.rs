pub mod mns;
