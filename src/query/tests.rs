//! Queries as a whole.
