//! JSON within texts.

use super::Function;

pub(super) const FUNCTIONS: &[Function] = &[];
