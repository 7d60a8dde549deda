//! Other attribute macros in front of ours and behind it.
#![deny(warnings)]
use std::future::Future;
use std::pin::Pin;

use scope_runtime::scope;

#[scope]
#[tracing::instrument]
fn traced_inside(x: u8) -> u8 {
    x + 1
}

#[tracing::instrument(skip(x), ret)]
#[scope]
fn traced_outside(x: u8) -> u8 {
    x + 1
}

#[async_trait::async_trait]
trait Fetch {
    fn plain(&self) -> u8;

    #[scope]
    fn with_a_body(&self) -> u8 {
        self.plain()
    }

    fn future(&self) -> Pin<Box<dyn Future<Output = u8> + Send + '_>>;
}

struct Store(u8);

#[scope]
#[async_trait::async_trait]
impl Fetch for Store {
    fn plain(&self) -> u8 {
        self.0
    }

    fn future(&self) -> Pin<Box<dyn Future<Output = u8> + Send + '_>> {
        let value = self.0;
        Box::pin(async move { value })
    }
}

struct Other;

#[async_trait::async_trait]
#[scope]
impl Fetch for Other {
    fn plain(&self) -> u8 {
        2
    }

    #[scope(name = "other future")]
    fn future(&self) -> Pin<Box<dyn Future<Output = u8> + Send + '_>> {
        Box::pin(async { 3 })
    }
}

#[scope]
fn main() {
    assert_eq!(traced_inside(1) + traced_outside(1), 4);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::{fixture, rstest};

    #[test]
    #[scope]
    fn test_outside() {
        main();
    }

    #[scope]
    #[test]
    fn test_inside() -> Result<(), std::num::ParseIntError> {
        assert_eq!("5".parse::<u8>()?, 5);
        Ok(())
    }

    #[scope]
    #[test]
    #[should_panic(expected = "on purpose")]
    fn panics() {
        panic!("on purpose");
    }

    #[test]
    #[ignore = "takes part all the same"]
    #[scope]
    fn ignored() {
        unreachable!();
    }

    #[fixture]
    #[scope]
    fn five() -> u8 {
        5
    }

    #[rstest]
    #[case(1, 6)]
    #[case(2, 7)]
    #[scope]
    fn cases_outside(five: u8, #[case] x: u8, #[case] sum: u8) {
        assert_eq!(x + five, sum);
    }

    #[scope]
    #[rstest]
    #[case(1)]
    #[case(2)]
    fn cases_inside(#[case] x: u8, #[values(3, 4)] y: u8) {
        assert!(x < y);
    }

    #[scope]
    mod module {
        use super::*;

        #[tokio::test]
        #[scope(skip)]
        async fn awaits_in_a_block() {
            assert_eq!(Store(1).future().await + Other.future().await, 4);
        }

        #[test]
        fn in_a_block() {
            assert_eq!(Store(1).with_a_body() + Other.with_a_body(), 3);
        }
    }
}
