//! G1 to G11 between machines: network, pid and mount namespaces joined by virtual cables. A machine sees the others' processes
//! as little as real ones do; its process numbers may well be theirs.

use std::process::{Command, Stdio};

use mcp_state::{Delivery, DuplicatePolicy, Engine, OwnerKind};

use crate::common::process::Worker;
use crate::common::redis::{RedisServer, wait_until};
use crate::workers::Test;
use crate::{Result, named, works};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("machines_reach_the_server_and_see_nothing_of_each_other", machines_are_apart),
    ("g1_two_machines_lose_no_update", g1_no_lost_update),
    ("g9_an_answer_on_one_machine_wakes_the_waiter_on_another", g9_an_answer_wakes),
    ("g11_who_lives_on_another_machine_is_not_taken_for_dead", g11_the_living),
    ("g11_what_a_dead_machine_leaves_is_released_when_the_lease_has_run_out", g11_a_dead_machine),
];

/// Two machines, and a third that serves Redis to them by TCP.
struct Machines {
    one: Machine,
    two: Machine,
    server: RedisServer,
    _serving: Machine,
}

/// The addresses are those for documentation, in networks that exist only here.
const PORT: &str = "6379";

impl Machines {
    /// None where this user may not make any.
    fn new() -> Result<Option<Self>> {
        // SAFETY: geteuid cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return Ok(None);
        }
        let (one, two, serving) = (Machine::start()?, Machine::start()?, Machine::start()?);
        for (number, machine) in [(1, &one), (2, &two)] {
            let [cable, end] = ["cable", "end"].map(|name| format!("{name}{number}"));
            serving.ip(&["link", "add", &cable, "type", "veth", "peer", "name", &end, "netns", &machine.init])?;
            serving.ip(&["address", "add", &format!("192.0.2.{number}1/28"), "dev", &cable])?;
            serving.ip(&["link", "set", &cable, "up"])?;
            machine.ip(&["address", "add", &format!("192.0.2.{number}2/28"), "dev", &end])?;
            machine.ip(&["link", "set", &end, "up"])?;
        }
        let options = ["--bind", "0.0.0.0", "--protected-mode", "no", "--port", PORT];
        let server = RedisServer::run_by(&["nsenter", &serving.network()], &options);
        Ok(Some(Self { one, two, server, _serving: serving }))
    }

    fn dsn(number: u8, options: &str) -> String {
        format!("redis://192.0.2.{number}1:{PORT}?{options}")
    }
}

fn needs_root() -> Result {
    Err("this test makes network namespaces, which needs root".into())
}

/// A machine: namespaces that last as long as their first process, which ends with this value or with this process.
struct Machine {
    first: Worker,
    /// The first process's number as this machine's own processes see it.
    init: String,
}

impl Machine {
    fn start() -> Result<Self> {
        let mut command = Command::new("unshare");
        command.args(["--net", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        command.args(["sh", "-c", "ip link set lo up && echo up && read -r _"]);
        let mut first = Worker::spawn(command);
        first.line("up");
        let children = format!("/proc/{0}/task/{0}/children", first.child.id());
        let init = std::fs::read_to_string(children)?.trim().to_owned();
        Ok(Self { first, init })
    }

    fn enter(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.init, "--net", "--pid", "--mount"]).args(words);
        command
    }

    fn network(&self) -> String {
        format!("--net=/proc/{}/ns/net", self.init)
    }

    /// Sets up its network, as seen from outside, where machines have numbers.
    fn ip(&self, words: &[&str]) -> Result {
        output(Command::new("nsenter").arg(self.network()).arg("ip").args(words)).map(|_| ())
    }

    /// What a command says there.
    fn run(&self, words: &[&str]) -> Result<String> {
        output(&mut self.enter(words))
    }

    fn worker(&self, role: &[&str]) -> Worker {
        let program = std::env::current_exe().expect("this program");
        let program = program.to_str().expect("its path is UTF-8");
        Worker::spawn(self.enter(&[&[program, "--role"], role].concat()))
    }

    /// The power goes: every process ends at once, and no connection is closed properly by anybody but the kernel.
    fn kill(mut self) {
        self.first.kill();
    }
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()).concat();
    if output.status.success() { Ok(said) } else { Err(format!("{command:?}: {said}").into()) }
}

fn machines_are_apart() -> Result {
    let Some(machines) = Machines::new()? else { return needs_root() };
    for (machine, own, other) in
        [(&machines.one, "192.0.2.11", "192.0.2.21"), (&machines.two, "192.0.2.21", "192.0.2.11")]
    {
        assert_eq!(machine.run(&["redis-cli", "-h", own, "-p", PORT, "PING"])?, "PONG");
        assert!(machine.run(&["redis-cli", "-h", other, "-p", PORT, "PING"]).is_err());
        let processes = machine.run(&["sh", "-c", "ls -d /proc/[0-9]*"])?;
        assert!(processes.lines().count() < 6, "{processes}");
    }
    Ok(())
}

fn g1_no_lost_update() -> Result {
    let Some(machines) = Machines::new()? else { return needs_root() };
    let engine = Engine::open(&machines.server.dsn(""))?;
    let session = named(&engine, "s");
    let mut workers = vec![];
    for number in 0..4 {
        let (machine, place) = if number % 2 == 0 { (&machines.one, 1) } else { (&machines.two, 2) };
        workers.push(machine.worker(&["update", &Machines::dsn(place, ""), "s", &number.to_string()]));
    }
    for worker in workers {
        assert!(worker.finish().success());
    }
    assert_eq!(session.attributes().get("shared")?.as_deref(), Some("400"));
    assert_eq!(engine.contradictions()?, Vec::<String>::new());
    Ok(())
}

fn g9_an_answer_wakes() -> Result {
    let Some(machines) = Machines::new()? else { return needs_root() };
    let engine = Engine::open(&machines.server.dsn(""))?;
    let session = named(&engine, "s");
    for _ in 0..5 {
        let mut asker = machines.one.worker(&["ask", &Machines::dsn(1, ""), "s", "60000"]);
        let id = asker.line("id");
        assert!(machines.two.worker(&["answer", &Machines::dsn(2, ""), "s", &id]).finish().success());
        assert_eq!(asker.line("answer"), "\"yes\"");
    }
    works(&session)
}

fn g11_the_living() -> Result {
    let Some(machines) = Machines::new()? else { return needs_root() };
    // The lease is long over when the others look; the process lives, and a tool may be silent.
    let options = "lease_ms=1";
    let engine = Engine::open(&machines.server.dsn(options))?;
    let session = named(&engine, "s");
    let mut asker = machines.one.worker(&["ask", &Machines::dsn(1, ""), "s", "60000"]);
    let id: i64 = asker.line("id").parse()?;
    assert!(machines.two.worker(&["round", &Machines::dsn(2, options), "s"]).finish().success());
    works(&session)?;
    engine.collect(100)?;
    assert_eq!(session.deliver_response(id, "\"yes\"")?, Delivery::Delivered);
    assert_eq!(asker.line("answer"), "\"yes\"");
    Ok(())
}

fn g11_a_dead_machine() -> Result {
    let Some(machines) = Machines::new()? else { return needs_root() };
    let options = "lease_ms=1500";
    let engine = Engine::open(&machines.server.dsn(options))?;
    let session = named(&engine, "s");
    let mut held = machines.one.worker(&["hold", &Machines::dsn(1, options), "s"]);
    held.line("holding");
    machines.one.kill();
    assert_eq!(session.stats()?.owners, 1, "nobody can know yet");
    wait_until("the dead machine's owner is released", || {
        let visitor = session.attach(OwnerKind::Reply, None).expect("attached");
        let begun = session.begin_request(&visitor, &1.into(), DuplicatePolicy::Reject).expect("begun");
        session.detach(&visitor).expect("detached");
        begun
    });
    assert_eq!(session.stats()?.owners, 0);
    Ok(())
}
