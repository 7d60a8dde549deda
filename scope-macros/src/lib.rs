//! The `#[scope]` attribute of scope-runtime.
