#![deny(warnings, clippy::all, clippy::pedantic)]
#![allow(clippy::unused_async, reason = "the forms are what this is about")]
//! Async functions of every form: signatures, drop order, recursion, traits, boxed futures.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use scope_runtime::{ScopeFuture, scope};

/// Pending once.
struct Yield(bool);

impl Future for Yield {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = Box::pin(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
    }
}

fn is_send<F: Future + Send>(future: F) -> F {
    future
}

type Log = Rc<RefCell<Vec<&'static str>>>;

struct Noted(&'static str, Log);

impl Drop for Noted {
    fn drop(&mut self) {
        self.1.borrow_mut().push(self.0);
    }
}

struct Counter {
    n: u64,
}

trait Steps {
    fn go(&self) -> impl Future<Output = u64>;
    async fn by_default(&self) -> u64;
    #[scope]
    async fn with_body(&self) -> u64 {
        self.go().await + 1
    }
}

impl Steps for Counter {
    #[scope]
    async fn go(&self) -> u64 {
        Yield(false).await;
        self.n
    }
    #[scope]
    async fn by_default(&self) -> u64 {
        self.n
    }
}

#[scope]
impl Counter {
    async fn find<'a>(
        &'a self,
        key: &'a str,
        mut bytes: Vec<u8>,
        _: String,
        (low, high): (u8, u8),
        _unused: u8,
    ) -> Result<&'a str, Box<dyn std::error::Error>> {
        bytes.push(low);
        bytes.push(high);
        if bytes.len() > 3 {
            return Err("long".into());
        }
        key.parse::<u64>()?;
        Yield(false).await;
        Ok(if self.n > 0 { key } else { "" })
    }

    async fn into_number(mut self) -> u64 {
        self.n += 1;
        self.n
    }

    async fn shown(&self, more: impl Into<u64>) -> impl std::fmt::Display {
        more.into() + self.n
    }

    const fn number(&self) -> u64 {
        self.n
    }
}

#[scope]
async fn fibonacci(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    Box::pin(fibonacci(n - 1)).await + Box::pin(fibonacci(n - 2)).await
}

#[scope]
async fn twice<T: Clone, const N: usize>(value: &T, _f: fn(&T)) -> ([T; N], HashOf<T>)
where
    T: std::fmt::Debug,
{
    (std::array::from_fn(|_| value.clone()), HashOf(value.clone()))
}

#[derive(Debug)]
struct HashOf<T>(T);

#[scope]
async fn forever() -> ! {
    loop {
        Yield(false).await;
    }
}

#[scope]
async fn dynamic() -> Box<dyn std::fmt::Debug + Send> {
    Box::new(1)
}

#[scope]
async fn question(text: &str) -> Option<u64> {
    let number = text.parse::<u64>().ok()?;
    Some(number + 1)
}

#[scope(name = "drops")]
async fn drops(first: Noted, _: Noted, second: Noted, _third: Noted) {
    let _kept = &second;
    let _taken = first;
    Yield(false).await;
}

async fn drops_unmeasured(first: Noted, _: Noted, second: Noted, _third: Noted) {
    let _kept = &second;
    let _taken = first;
    Yield(false).await;
}

#[scope(future)]
fn eager(n: u64) -> impl Future<Output = u64> {
    let doubled = n * 2;
    async move {
        Yield(false).await;
        doubled
    }
}

#[scope(future)]
fn boxed<'a>(n: &'a u64) -> Pin<Box<dyn Future<Output = u64> + Send + 'a>> {
    if *n == 0 {
        return Box::pin(async { 0 });
    }
    Box::pin(async move { *n + 1 })
}

/// As a macro for traits with async functions writes them.
#[scope]
fn desugared<'a>(n: &'a u64) -> Pin<Box<dyn Future<Output = u64> + Send + 'a>> {
    Box::pin(async move { *n + 1 })
}

fn check_drops() {
    let order = |function: &dyn Fn([Noted; 4])| {
        let log = Log::default();
        function(["first", "_", "second", "_third"].map(|name| Noted(name, Rc::clone(&log))));
        log.take()
    };
    let measured = order(&|[a, b, c, d]| block_on(drops(a, b, c, d)));
    assert_eq!(measured, order(&|[a, b, c, d]| block_on(drops_unmeasured(a, b, c, d))));
    let never_polled = order(&|[a, b, c, d]| drop(drops(a, b, c, d)));
    assert_eq!(never_polled, order(&|[a, b, c, d]| drop(drops_unmeasured(a, b, c, d))));
}

pub fn main() {
    block_on(async {
        let counter = Counter { n: 1 };
        assert_eq!(counter.find("7", Vec::new(), String::new(), (1, 2), 3).await.unwrap(), "7");
        assert!(counter.find("x", Vec::new(), String::new(), (1, 2), 3).await.is_err());
        assert_eq!(counter.go().await + counter.by_default().await + counter.with_body().await, 4);
        assert_eq!(counter.shown(3_u32).await.to_string(), "4");
        assert_eq!(counter.number() + counter.into_number().await, 3);
        assert_eq!(is_send(fibonacci(10)).await, 55);
        let (array, hash) = twice::<_, 3>(&1, |_| ()).await;
        assert_eq!((array, hash.0), ([1; 3], 1));
        assert_eq!(format!("{:?}", is_send(dynamic()).await), "1");
        assert_eq!((question("4").await, question("x").await), (Some(5), None));
        let mut endless = Box::pin(forever());
        assert!(endless.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!((eager(4).await, boxed(&0).await, boxed(&4).await, desugared(&4).await), (8, 0, 5, 5));
        assert_eq!(async { 3 }.in_region("block").await, 3);
    });
    check_drops();
}
