//! Random async programs, run by hand on a simulated clock, against a model that is told what runs.
//!
//! The model does not look at events: whoever lets time pass says on which thread, and the model knows
//! what is on top there. What the recorder makes of the same program must be equal to the last ns.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use crate::clock::SIMULATED;
use crate::profile::{LaneId, Profile};
use crate::recording::{Parent, Recording, RunId};
use crate::{InRegion, ScopeFuture};

/// Number of programs; as many again run when the event limit has been met.
const PROGRAMS: u64 = 10_000;
const THREADS: usize = 3;
/// Enough for about half of the programs.
const EVENT_LIMIT: &str = "2500KiB";

/// What an async function does, step by step.
#[derive(Debug)]
enum Step {
    Work(u64),
    Yield,
    /// A plain region with work in it, and maybe another one.
    Region(u64, bool),
    /// A region that is held while the inner steps run, over their awaits too.
    Held(Vec<Step>),
    Call(Body),
    Join(Vec<Body>),
    /// The first to complete ends the others.
    Select(Vec<Body>),
    Spawn(Body),
    /// From here on to the end there is a destructor with a region.
    Mop,
}

#[derive(Debug)]
struct Body {
    name: String,
    steps: Vec<Step>,
}

/// A small generator of random numbers (xorshift).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn body(&mut self, depth: u64, held: bool) -> Body {
        let name = format!("f{}", self.below(5));
        let steps = (0..self.below(5)).map(|_| self.step(depth, held)).collect();
        Body { name, steps }
    }

    fn step(&mut self, depth: u64, held: bool) -> Step {
        let bodies = |random: &mut Random| {
            (0..1 + random.below(3)).map(|_| random.body(depth - 1, held)).collect::<Vec<_>>()
        };
        match self.below(if depth == 0 { 6 } else { 12 }) {
            0 | 1 => Step::Work(1 + self.below(50)),
            2 | 3 => Step::Yield,
            4 => Step::Region(self.below(30), self.below(2) == 0),
            5 => Step::Mop,
            6 | 7 => Step::Call(self.body(depth - 1, held)),
            8 => Step::Join(bodies(self)),
            9 => Step::Select(bodies(self)),
            10 if held => Step::Held((0..self.below(4)).map(|_| self.step(depth - 1, held)).collect()),
            _ => Step::Spawn(self.body(depth - 1, held)),
        }
    }
}

/// One call, as the model sees it.
#[derive(Debug)]
struct Known {
    path: Vec<String>,
    start: u64,
    polls: u64,
    /// Calls that were open in it at the end of the last poll.
    aside: Vec<usize>,
    is_async: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Sums {
    calls: u64,
    cancelled: u64,
    own: u64,
    wall: u64,
    longest: u64,
}

/// All that the model was told.
#[derive(Default)]
struct Model {
    calls: Vec<Known>,
    stacks: [Vec<usize>; THREADS],
    sums: BTreeMap<Vec<String>, Sums>,
    polls: u64,
}

static MODEL: Mutex<Option<Model>> = Mutex::new(None);

thread_local! {
    static THREAD: Cell<usize> = const { Cell::new(0) };
}

struct Told(MutexGuard<'static, Option<Model>>);

impl std::ops::Deref for Told {
    type Target = Model;
    fn deref(&self) -> &Model {
        self.0.as_ref().expect("the test has made it")
    }
}

impl std::ops::DerefMut for Told {
    fn deref_mut(&mut self) -> &mut Model {
        self.0.as_mut().expect("the test has made it")
    }
}

fn model() -> Told {
    Told(crate::lock(&MODEL))
}

fn now() -> u64 {
    SIMULATED.load(Relaxed)
}

impl Model {
    fn stack(&mut self) -> &mut Vec<usize> {
        &mut self.stacks[THREAD.get()]
    }

    fn begin(&mut self, name: &str, is_async: bool) -> usize {
        let inside = !is_async || self.stack().clone().iter().any(|&call| self.calls[call].is_async);
        let top = self.stack().last().copied().filter(|_| inside);
        let mut path = top.map(|top| self.calls[top].path.clone()).unwrap_or_default();
        path.push(name.to_owned());
        self.calls.push(Known { path, start: now(), polls: 0, aside: Vec::new(), is_async });
        self.calls.len() - 1
    }

    fn end(&mut self, call: usize, cancelled: bool) {
        let Known { path, start, .. } = &self.calls[call];
        let sums = self.sums.entry(path.clone()).or_default();
        let wall = now() - start;
        sums.calls += 1;
        sums.cancelled += u64::from(cancelled);
        sums.wall += wall;
        sums.longest = sums.longest.max(wall);
    }
}

/// Lets time pass on this thread.
fn work(ns: u64) {
    let mut model = model();
    SIMULATED.fetch_add(ns, Relaxed);
    if let Some(&top) = model.stack().last() {
        let path = model.calls[top].path.clone();
        model.sums.entry(path).or_default().own += ns;
    }
}

/// A plain region that ends with this value.
struct Region {
    call: usize,
    guard: Option<crate::Guard>,
}

impl Region {
    fn enter(name: &str) -> Region {
        let mut model = model();
        let call = model.begin(name, false);
        model.stack().push(call);
        Region { call, guard: Some(crate::enter(name)) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let mut model = model();
        self.guard.take();
        assert_eq!(model.stack().pop(), Some(self.call));
        model.end(self.call, false);
    }
}

/// Has a region in its destructor.
struct Mop;

impl Drop for Mop {
    fn drop(&mut self) {
        work(1);
        let _region = Region::enter("mop");
        work(2);
    }
}

type Boxed = Pin<Box<dyn Future<Output = ()>>>;

/// An async region, of which the model is told too.
struct Observed {
    name: String,
    call: Option<usize>,
    ended: bool,
    inner: Option<Pin<Box<InRegion<Boxed>>>>,
}

impl Observed {
    fn new(body: &'static Body, name: String) -> Observed {
        let inner = Box::pin(run(body).in_region(&name));
        Observed { name, call: None, ended: false, inner: Some(inner) }
    }

    fn begin(&mut self) -> usize {
        let mut model = model();
        let call = *self.call.get_or_insert_with(|| model.begin(&self.name, true));
        model.calls[call].polls += 1;
        model.polls += 1;
        model.stack().push(call);
        let aside = std::mem::take(&mut model.calls[call].aside);
        model.stack().extend(aside);
        call
    }

    fn end(&mut self, call: usize) {
        let mut model = model();
        let stack = model.stack();
        let at = stack.iter().rposition(|&open| open == call).expect("it is being polled");
        let aside = stack.split_off(at + 1);
        stack.pop();
        model.calls[call].aside = aside;
    }
}

impl Future for Observed {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let call = self.begin();
        let inner = self.inner.as_mut().expect("it is there until the drop");
        let result = inner.as_mut().poll(context);
        self.end(call);
        if result.is_ready() {
            self.ended = true;
            model().end(call, false);
        }
        result
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        let call = if self.call.is_some() && !self.ended { Some(self.begin()) } else { None };
        self.inner.take();
        if let Some(call) = call {
            self.end(call);
            model().end(call, true);
        }
    }
}

/// Pending once.
struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Polls all of them each time, until all, or one, are done.
struct Several {
    futures: Vec<Option<Observed>>,
    all: bool,
}

impl Future for Several {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let all = self.all;
        for slot in &mut self.futures {
            let Some(future) = slot else { continue };
            if Pin::new(future).poll(context).is_ready() {
                *slot = None;
                if !all {
                    return Poll::Ready(());
                }
            }
        }
        if self.futures.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Tasks that were spawned and not polled yet.
static SPAWNED: Mutex<Vec<Task>> = Mutex::new(Vec::new());

struct Task(Observed);

// SAFETY: programs with guards that are held run on one thread.
unsafe impl Send for Task {}

fn run(body: &'static Body) -> Boxed {
    Box::pin(run_steps(&body.steps))
}

async fn run_steps(steps: &'static [Step]) {
    let mut mops = Vec::new();
    for step in steps {
        match step {
            Step::Work(ns) => work(*ns),
            Step::Yield => Yield(false).await,
            Step::Region(ns, nested) => {
                let _region = Region::enter("plain");
                work(*ns);
                if *nested {
                    let _inner = Region::enter("inner");
                    work(1);
                }
            }
            Step::Held(steps) => {
                let _held = Region::enter("held");
                Box::pin(run_steps(steps)).await;
            }
            Step::Call(body) => Observed::new(body, body.name.clone()).await,
            Step::Join(bodies) => several(bodies, true).await,
            Step::Select(bodies) => several(bodies, false).await,
            Step::Spawn(body) => {
                let name = format!("spawned {}", body.name);
                crate::lock(&SPAWNED).push(Task(Observed::new(body, name)));
            }
            Step::Mop => mops.push(Mop),
        }
    }
    while mops.pop().is_some() {}
}

fn several(bodies: &'static [Body], all: bool) -> Several {
    let futures = bodies.iter().map(|body| Some(Observed::new(body, body.name.clone()))).collect();
    Several { futures, all }
}

/// Threads that do one thing at a time, while the test waits.
struct Threads(Vec<Sender<Box<dyn FnOnce() + Send>>>);

impl Threads {
    fn start() -> Threads {
        let start = |number: usize| {
            let (sender, jobs) = channel::<Box<dyn FnOnce() + Send>>();
            std::thread::spawn(move || {
                THREAD.set(number);
                jobs.iter().for_each(|job| job());
            });
            sender
        };
        Threads((0..THREADS).map(start).collect())
    }

    fn run<T: Send + 'static>(&self, thread: usize, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, result) = channel();
        let job = move || sender.send(job()).expect("the test waits");
        self.0[thread].send(Box::new(job)).expect("the thread waits");
        result.recv().expect("the job has not panicked")
    }
}

/// Polls `task` once on the calling thread; gives it back unless it is done.
fn poll_once(mut task: Task, in_region: bool) -> Option<Task> {
    // As a region of a thread that waits for the task.
    let _region = in_region.then(|| {
        let region = Region::enter("block on");
        work(1);
        region
    });
    let ready = Pin::new(&mut task.0).poll(&mut Context::from_waker(Waker::noop())).is_ready();
    if ready { None } else { Some(task) }
}

fn run_program(number: u64, threads: &Threads) {
    let mut random = Random(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let held = random.below(4) == 0;
    let body: &'static Body = Box::leak(Box::new(random.body(3, held)));
    let mut tasks = VecDeque::from([Task(Observed::new(body, format!("program {}", number % 100)))]);
    while !tasks.is_empty() {
        let next = random.below(tasks.len() as u64) as usize;
        let task = tasks.remove(next).expect("it is one of them");
        let thread = if held { 0 } else { random.below(THREADS as u64) as usize };
        let (aborts, in_region) = (random.below(40) == 0, random.below(8) == 0);
        work_between(random.below(9));
        let left = threads.run(thread, move || if aborts { None } else { poll_once(task, in_region) });
        tasks.extend(left);
        tasks.extend(crate::lock(&SPAWNED).drain(..));
    }
}

/// Lets time pass while nothing runs.
fn work_between(ns: u64) {
    SIMULATED.fetch_add(ns, Relaxed);
}

/// `(calls, cancelled, own, wall, longest)` and the inclusive time of each path that was recorded.
fn recorded(profile: &Profile) -> BTreeMap<Vec<String>, (Sums, u64)> {
    let mut paths: Vec<Vec<String>> = Vec::new();
    let mut sums = BTreeMap::new();
    for node in profile.paths.nodes() {
        let mut path = node.parent.map(|parent| paths[parent.0 as usize].clone()).unwrap_or_default();
        path.push(profile.regions[node.region.0 as usize].name.clone());
        let own = node.self_ns as u64;
        let (wall, longest) = (node.wall_ns as u64, node.max_ns as u64);
        let found = Sums { calls: node.calls, cancelled: node.cancelled, own, wall, longest };
        sums.insert(path.clone(), (found, node.inclusive_ns as u64));
        paths.push(path);
    }
    sums
}

#[test]
fn random_async_programs_are_recorded_as_they_ran() {
    let folder = std::env::temp_dir().join(format!("scope-model-{}", std::process::id()));
    // SAFETY: no other test of this program touches the environment.
    unsafe {
        std::env::set_var("SCOPE_OUTPUT", &folder);
        std::env::set_var("SCOPE_EVENT_LIMIT", EVENT_LIMIT);
    }
    SIMULATED.store(1_000_000, Relaxed);
    *crate::lock(&MODEL) = Some(Model::default());
    let session = crate::init();
    let threads = Threads::start();
    for number in 0..PROGRAMS {
        run_program(number, &threads);
    }
    drop(session);
    let profile = crate::finalize();
    assert_eq!((profile.lost_calls, profile.open_calls, profile.faulty_calls), (0, 0, 0));
    assert!(profile.timeline_end_ns.is_some(), "the limit was met half-way");

    let model = model();
    let found = recorded(&profile);
    for (path, (sums, inclusive)) in &found {
        assert_eq!(Some(sums), model.sums.get(path), "{path:?}");
        let below = model.sums.range(path.clone()..).take_while(|(other, _)| other.starts_with(path));
        assert_eq!(*inclusive, below.map(|(_, sums)| sums.own).sum::<u64>(), "{path:?}");
    }
    assert_eq!(found.len(), model.sums.len());
    assert!(found.len() > 10_000, "{} paths are not many", found.len());

    let recording = Recording::open(&folder.join("rank0.scope")).unwrap();
    let polls = recording.tasks().polls().len();
    assert!(polls > 10_000, "{polls} polls are not many");
    check_lanes(&recording);
    recording.assert_that_totals_may_begin_anywhere();
    std::fs::remove_dir_all(&folder).unwrap();
}

/// On one lane calls nest, and each is inside the call that it says it is in.
fn check_lanes(recording: &Recording) {
    let tasks = recording.tasks();
    // Start, end and position in `calls`, by lane: of a task, or of a thread.
    type Interval = (i64, i64, usize);
    let mut by_lane: HashMap<(bool, u32), Vec<Interval>> = HashMap::new();
    let mut calls = Vec::new();
    for lane in 0..recording.profile().lanes.len() as u32 {
        let mut of_lane: Vec<Option<u32>> = Vec::new();
        for call in recording.calls(LaneId(lane)) {
            let task = call.run.and_then(|RunId(run)| tasks.runs()[run as usize].task).map(|task| task.0);
            let inherited = match call.parent {
                Parent::None => None,
                Parent::Call(parent) => of_lane[parent as usize],
                Parent::Run(RunId(run)) => tasks.runs()[run as usize].task.map(|task| task.0),
            };
            let task = task.or(inherited);
            of_lane.push(task);
            if let Some(RunId(run)) = call.run {
                let run = &tasks.runs()[run as usize];
                assert!(run.busy_ns <= call.end_ns - call.start_ns && run.polls > 0, "{run:?}");
            }
            let key = task.map_or((false, lane), |task| (true, task));
            by_lane.entry(key).or_default().push((call.start_ns, call.end_ns, calls.len()));
            calls.push(call);
        }
    }
    assert!(by_lane.len() > THREADS);
    for lane in by_lane.values_mut() {
        // Of two that begin at once the longer one is outside.
        lane.sort_by_key(|&(start_ns, end_ns, index)| (start_ns, std::cmp::Reverse(end_ns), index));
        let mut open: Vec<i64> = Vec::new();
        for &(start_ns, end_ns, index) in lane.iter() {
            while open.pop_if(|until| *until <= start_ns).is_some() {}
            if let Some(&until) = open.last() {
                assert!(end_ns <= until, "{:?} overlaps", calls[index]);
            }
            open.push(end_ns);
        }
    }
}
