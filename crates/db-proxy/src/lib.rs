//! The pooler.
