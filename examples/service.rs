//! A small HTTP service that knows nothing of regions, only the spans of `tracing`; its own clients ask
//! it over the loopback interface until they have had enough.
//!
//! ```text
//! cargo scope run --release --example service -- --clients 8 --requests 50
//! ```
//!
//! What a service that has spans must add for its profile is one dependency in its manifest, and one line
//! here, marked below. Each connection and each request is a call that is busy while a worker polls it
//! and waits in between; the flame graph shows the busy time, with the handlers below `answer`.

use std::convert::Infallible;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use examples::Calls;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, client, server};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tracing::{Instrument, info_span, instrument, warn};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::prelude::*;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// What the clients ask for in turn, with the spans that the answer takes.
const QUESTIONS: [(&str, &[(&str, u64)]); 4] = [
    ("/hello", &[("hello", 1)]),
    ("/primes/20000", &[("primes", 1), ("sieve", 1), ("render", 1)]),
    ("/report", &[("report", 1), ("look_up", 3), ("render", 1)]),
    ("/nothing", &[]),
];

/// How long the shelf takes to bring a book.
const LATENCY: Duration = Duration::from_millis(1);

struct Options {
    clients: u64,
    requests: u64,
    counts: bool,
}

fn main() -> Result<()> {
    let Some(options) = Options::parse()? else {
        println!("Usage: service [--clients N] [--requests N] [--counts]");
        return Ok(());
    };
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_filter(LevelFilter::ERROR);
    tracing_subscriber::registry()
        .with(log)
        .with(scope_runtime::layer()) // the line that records the spans
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let calls = runtime.block_on(serve_own_clients(&options))?;
    println!("{} answers", options.clients * options.requests);
    if options.counts {
        print!("{calls}");
    }
    Ok(())
}

/// Answers every connection until all clients are done, and gives the calls that this must have taken.
async fn serve_own_clients(options: &Options) -> Result<Calls> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let mut clients = JoinSet::new();
    for client in 0..options.clients {
        clients.spawn(ask(address, client, options.requests));
    }
    let mut connections = JoinSet::new();
    for _ in 0..options.clients {
        let (stream, _) = listener.accept().await?;
        let answers =
            server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
        connections.spawn(answers.instrument(info_span!("connection")));
    }
    let mut calls = Calls::default();
    while let Some(asked) = clients.join_next().await {
        calls.add(&asked??);
        calls.count("connection");
    }
    while let Some(served) = connections.join_next().await {
        served??;
    }
    Ok(calls)
}

#[instrument(skip_all)]
async fn answer(request: Request<Incoming>) -> std::result::Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path();
    let answer = match path.strip_prefix("/primes/").map(str::parse) {
        Some(Ok(below)) => Some(primes(below)),
        _ if path == "/hello" => Some(hello()),
        _ if path == "/report" => Some(report().await),
        _ => None,
    };
    let status = if answer.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    if answer.is_none() {
        warn!(path, "nobody knows");
    }
    let mut response = Response::new(Full::new(answer.unwrap_or_default().into()));
    *response.status_mut() = status;
    Ok(response)
}

#[instrument]
fn hello() -> String {
    "hello\n".into()
}

/// All primes below a number: a handler that is busy.
#[instrument]
fn primes(below: usize) -> String {
    let mut is_prime = vec![true; below.min(1_000_000)];
    info_span!("sieve").in_scope(|| {
        is_prime.iter_mut().take(2).for_each(|number| *number = false);
        for number in 2..is_prime.len() {
            if is_prime[number] {
                (number * number..is_prime.len()).step_by(number).for_each(|many| is_prime[many] = false);
            }
        }
    });
    render(is_prime.iter().zip(0..).filter(|(is_prime, _)| **is_prime).map(|(_, number)| number))
}

/// The length of three books: a handler that waits for three things at once.
#[instrument]
async fn report() -> String {
    let (first, second, third) = tokio::join!(look_up("Emma"), look_up("Ulysses"), look_up("Walden"));
    render([first, second, third].into_iter())
}

#[instrument(skip_all)]
async fn look_up(title: &str) -> usize {
    tokio::time::sleep(LATENCY).await;
    title.len()
}

#[instrument(skip_all)]
fn render(numbers: impl Iterator<Item = usize>) -> String {
    numbers.map(|number| format!("{number}\n")).collect()
}

/// One client: asks its questions one after the other on one connection, and counts what it asked for.
async fn ask(address: SocketAddr, client: u64, requests: u64) -> Result<Calls> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let mut calls = Calls::default();
    for number in 0..requests {
        let (path, regions) = QUESTIONS[(client + number) as usize % QUESTIONS.len()];
        let request = Request::get(path).header("host", "localhost").body(Full::<Bytes>::default())?;
        let response = sender.send_request(request).await?;
        let is_known = response.status() == StatusCode::OK;
        let body = response.into_body().collect().await?.to_bytes();
        assert_eq!((is_known, is_known), (!regions.is_empty(), !body.is_empty()), "{path}");
        calls.count("answer");
        for &(region, times) in regions {
            (0..times).for_each(|_| calls.count(region));
        }
    }
    drop(sender);
    connection.await??;
    Ok(calls)
}

impl Options {
    /// `None` for `--help`.
    fn parse() -> std::result::Result<Option<Options>, lexopt::Error> {
        use lexopt::prelude::*;
        let mut options = Options { clients: 4, requests: 40, counts: false };
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("clients") => options.clients = parser.value()?.parse()?,
                Long("requests") => options.requests = parser.value()?.parse()?,
                Long("counts") => options.counts = true,
                Long("help") => return Ok(None),
                _ => return Err(argument.unexpected()),
            }
        }
        Ok(Some(options))
    }
}
