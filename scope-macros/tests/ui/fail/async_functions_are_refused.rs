//! For the time being.
use scope_runtime::scope;

#[scope]
async fn later() {}

#[scope]
mod inside {
    pub async fn later() {}
}

fn main() {
    drop((later(), inside::later()));
}
