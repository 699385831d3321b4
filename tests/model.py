#!/usr/bin/env python3
"""Explores the state machine, and breaks its rules one by one to see that the model checker finds each.

    tests/model.py explore --depth 5        every interleaving up to a depth
    tests/model.py mutants                  all mutants
    tests/model.py mutants --some 8         as many, chosen by a seed that is printed; --seed S chooses them again

Both run on a copy of the pure modules as a crate of their own, which builds in seconds; the checker is the one of
src/session/model. A mutant is the real source with one text replaced. All of them are built at once: the function that has the
text gets the broken body beside its own, and MCP_STATE_MUTANT says which runs. A mutant is found when the checker reports one of
the guarantees named beside it. The last line of `mutants` is `mutants: N found, M not found`; exit status 1 unless M is 0.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "build" / "model-target"
#: What the state machine needs of the crate.
MODULES = ("clock", "counter", "error", "fault", "fork", "ids", "kind", "process", "session", "settings")
SECONDS = 600  # for one depth of one mutant
BUILD_SECONDS = 1800
#: A mutant that is not found is looked for one step deeper, then two.
DEPTHS = (3, 4, 5)


@dataclass(frozen=True)
class Mutant:
    """One rule, broken: in `file` of src/session, or of the folder of src that it names, `before` becomes `after`; one of `guarantees` must be seen to fail."""

    name: str
    guarantees: str
    file: str
    before: str
    after: str


MUTANTS = [
    # G2: one resolution
    Mutant(
        "a claim leaves the request", "G2 G8", "pending.rs",
        "        let record = self.record_mut();\n        record.pending.remove(at);\n        // Ids the session gave",
        "        let record = self.record_mut();\n        // Ids the session gave",
    ),
    Mutant(
        "a claim leaves the response", "G4", "pending.rs",
        "                self.delete(Payload::Response(id));\n                let record", "                let record",
    ),
    Mutant(
        "an answer is lost when the deadline passes", "G2", "pending.rs",
        "            PendingState::Answered { .. } => Claim::Answered(String::new()),\n            PendingState::TimedOut",
        "            PendingState::Answered { .. } if self.deadline > now => Claim::Answered(String::new()),\n"
        "            PendingState::Answered { .. } => Claim::TimedOut,\n            PendingState::TimedOut",
    ),
    Mutant(
        "cancelling undoes an answer", "G2", "pending.rs",
        "            PendingState::Answered { .. } => Cancellation::AlreadyAnswered,\n",
        "            PendingState::Answered { .. } => {\n"
        "                let event = self.wake_owner(index);\n"
        "                self.record_mut().pending[at].state = PendingState::Cancelled { event };\n"
        "                Cancellation::Cancelled\n            }\n",
    ),
    Mutant(
        "what ended last is claimed first", "G2", "pending.rs",
        "            .min();\n        match next {", "            .max();\n        match next {",
    ),
    Mutant(
        "timeouts are told and kept", "G2", "pending.rs",
        "        for &id in &passed {\n            self.claim(token, id)?;\n        }\n", "",
    ),
    # G3: ownership
    Mutant(
        "any owner claims", "G3", "pending.rs",
        "        if self.record().pending[at].owner != self.record().owners[index].number {\n            return Ok(Claim::NotOwner);",
        "        if self.record().pending[at].owner == 0 && index > 9 {\n            return Ok(Claim::NotOwner);",
    ),
    Mutant(
        "any owner cancels", "G3", "pending.rs",
        "        if self.record().pending[at].owner != self.record().owners[index].number {\n            return Ok(Cancellation::NotOwner);",
        "        if self.record().pending[at].owner == 0 && index > 9 {\n            return Ok(Cancellation::NotOwner);",
    ),
    Mutant(
        "claim_any takes from others", "G3", "pending.rs",
        "            .enumerate()\n            .filter(|(_, pending)| pending.owner == owner)\n",
        "            .enumerate()\n            .filter(|(_, pending)| pending.owner == owner || pending.owner != owner)\n",
    ),
    Mutant(
        "any owner reads a response", "G3", "pending.rs",
        "            pending.id == id && pending.owner == owner && matches!", "            pending.id == id && pending.owner >= owner.min(1) && matches!",
    ),
    Mutant(
        "the timeouts of others are seen", "G3", "pending.rs",
        "            .filter(|pending| pending.owner == owner && matches!(pending.state, PendingState::TimedOut { .. }))",
        "            .filter(|pending| pending.owner >= owner.min(1) && matches!(pending.state, PendingState::TimedOut { .. }))",
    ),
    Mutant(
        "a reply takes broadcasts", "G3", "outgoing.rs",
        "        if owner.kind != OwnerKind::Stream || room == 0 || free == 0 {", "        if room == 0 || free == 0 {",
    ),
    Mutant(
        "a held broadcast goes to another stream, too", "G3 G8", "outgoing.rs",
        "        for broadcast in record.broadcasts.iter_mut().filter(|broadcast| broadcast.holder.is_none()).take(room) {",
        "        for broadcast in record.broadcasts.iter_mut().take(room) {",
    ),
    Mutant(
        "taking does not remove", "G3", "outgoing.rs",
        "        if let Some(last) = messages.last() {\n            self.acknowledge(token, last.sequence)?;\n        }\n", "",
    ),
    Mutant(
        "acknowledging takes one message too many", "G3", "outgoing.rs",
        "owner.tail.min(up_to.saturating_add(1))", "owner.tail.min(up_to.saturating_add(2))",
    ),
    # G4: no late response
    Mutant(
        "a response at the deadline is in time", "G4 G2", "pending.rs",
        "        if deadline <= self.now() {\n            return Ok(Some(LateReason::TimedOut));",
        "        if deadline < self.now() {\n            return Ok(Some(LateReason::TimedOut));",
    ),
    Mutant(
        "a response to a dead process is kept", "G4", "pending.rs",
        "        if self.liveness(&self.record().owners[index].process)? == Liveness::Dead {\n            let record",
        "        if self.liveness(&self.record().owners[index].process)? == Liveness::Dead && index > 9 {\n            let record",
    ),
    Mutant(
        "a second response replaces the first", "G4 G8", "pending.rs",
        "                PendingState::Answered { .. } => LateReason::AlreadyAnswered,\n",
        "                PendingState::Answered { .. } => match self.answer(at, payload)? {\n"
        "                    None => return Ok(Delivery::Delivered),\n                    Some(late) => late,\n                },\n",
    ),
    Mutant(
        "a late response is kept", "G4", "pending.rs",
        "        *count = count.saturating_add(1);\n",
        "        *count = count.saturating_add(1);\n        self.put(Payload::Response(id), payload.as_bytes().to_vec());\n",
    ),
    Mutant(
        "how a request ended is forgotten", "G4", "pending.rs",
        "            Some(&(_, reason)) => reason,\n", "            Some(_) => LateReason::Unknown,\n",
    ),
    # G5: ids are never shared
    Mutant(
        "an id is given out twice", "G5", "pending.rs", "        record.next_request += 1;\n",
        "        record.next_request += i64::from(record.pending.is_empty());\n",
    ),
    Mutant(
        "an id that was registered by hand is given out", "G5", "pending.rs",
        "            record.next_request = id + 1;\n", "            record.next_request += 0;\n",
    ),
    Mutant(
        "an id is registered twice", "G5 G2", "pending.rs",
        "        if let Some(at) = self.find(id) {\n            return self.name_pending(index, at, method);",
        "        if let Some(at) = self.find(id).filter(|_| index > 9) {\n            return self.name_pending(index, at, method);",
    ),
    # G6: isolation of equal ids
    Mutant(
        "reject does not refuse", "G6", "in_flight.rs",
        "        if policy == DuplicatePolicy::Reject && !self", "        if policy == DuplicatePolicy::Reject && index > 9 && !self",
    ),
    Mutant(
        "isolate refuses", "G6", "in_flight.rs", "        if policy == DuplicatePolicy::Reject && !self", "        if !self",
    ),
    Mutant(
        "a request is finished by another", "G6", "in_flight.rs",
        "position(|request| request.owner == owner && request.id == *id)", "position(|request| request.owner >= owner.min(1) && request.id == *id)",
    ),
    Mutant(
        "an ambiguous cancellation hits the first", "G6", "in_flight.rs", "            &[at] => {", "            &[at, ..] => {",
    ),
    Mutant(
        "the request of a dead process blocks its id", "G6", "in_flight.rs",
        "            if self.liveness(&owner.process)? != Liveness::Dead {", "            if self.liveness(&owner.process).is_ok() || id.text_bytes() < 9 {",
    ),
    # G7: destroyed is final
    Mutant(
        "an old handle is let in to a new session", "G7", "lifecycle.rs",
        "            Some(record) if record.incarnation == handle.incarnation && belongs", "            Some(record) if handle.incarnation > 0 && belongs",
    ),
    Mutant(
        "an expired session is let in", "G7", "lifecycle.rs",
        "        if self.now() < record.expires() || record.is_room() {\n            return Ok(true);", "        if self.now() < record.expires() + record.ttl {\n            return Ok(true);",
    ),
    Mutant(
        "a session expires although an owner lives", "G7", "lifecycle.rs",
        "                Ok(true) => return Ok(true),\n                Ok(false) => {}", "                Ok(true) | Ok(false) => {}",
    ),
    Mutant(
        "activity does not renew the expiry", "G7", "lifecycle.rs", "        self.keep_from_expiring();\n", "",
    ),
    Mutant(
        "a new session inherits what an expired one left", "G7 G11", "lifecycle.rs",
        "        self.effects.purge = replaces.is_some();\n", "        self.effects.purge = false;\n",
    ),
    Mutant(
        "a taken id is taken over", "G7", "lifecycle.rs",
        "            Some(_) if self.is_there()? => return Ok(false),", "            Some(old) if self.is_there()? && old.principal.is_some() => return Ok(false),",
    ),
    # G9: no lost wake-up, the part of the state machine
    Mutant(
        "an answer wakes nobody", "G9", "pending.rs",
        "        record.owners[index].resolved_at = event;\n        record.pending[at].state = PendingState::Answered",
        "        record.pending[at].state = PendingState::Answered",
    ),
    Mutant(
        "events do not ring", "G9", "owners.rs", "        self.ring(token);\n        event\n", "        event\n",
    ),
    Mutant(
        "a broadcast wakes one stream only", "G9", "outgoing.rs",
        "                self.edit().owners[index].message_at = event;\n            }",
        "                self.edit().owners[index].message_at = event;\n                return;\n            }",
    ),
    Mutant(
        "a destroyed session wakes nobody", "G9", "lifecycle.rs", "        self.effects.rings.extend(rings);\n", "        drop(rings);\n",
    ),
    # G10: what is counted
    Mutant(
        "the bytes of an acknowledged message stay counted", "G10", "outgoing.rs", "            record.message_bytes = Record::without(record.message_bytes, broadcast.unwrap_or(own))?;\n", "",
    ),
    Mutant(
        "the sessions of a principal are not counted down", "G10", "lifecycle.rs",
        "        self.effects.population = Some((Population::Removed, principal));", "        self.effects.population = Some((Population::Removed, principal.filter(|_| false)));",
    ),
    Mutant(
        "a session with an owner gives way", "G10 G11", "lifecycle.rs",
        "        if record.owners.is_empty() && idle >= least && is_next {", "        if idle >= least && is_next {",
    ),
    # G11: leftovers go
    Mutant(
        "a dead owner stays", "G11", "lifecycle.rs",
        "        Ok(self.liveness(&owner.process)? == Liveness::Alive)", "        Ok(self.liveness(&owner.process)? != Liveness::Unknown)",
    ),
    Mutant(
        "silence is death", "G11 G7", "lifecycle.rs", "        if silent > self.record().longest_silence() {", "        if silent > self.record().ttl {",
    ),
    Mutant(
        "silence is never death", "G11 G7", "lifecycle.rs", "        if silent > self.record().longest_silence() {", "        if silent > Millis::MAX - 1 {",
    ),
    Mutant(
        "an owner's lease is not renewed", "G11 G3", "owners.rs",
        "        if owner.lease_until.saturating_sub(self.now()) < owner.lease / 4 * 3 {\n            self.renew_lease(index);\n        }\n", "",
    ),
    Mutant(
        "a released owner's messages stay", "G11", "owners.rs",
        "            self.delete(Payload::Outgoing { owner: owner.number, sequence });\n            detached", "            detached",
    ),
    Mutant(
        "a released owner keeps its broadcasts", "G3 G8 G11", "owners.rs", "                broadcast.holder = None;\n                returned", "                returned",
    ),
    Mutant(
        "a released owner's requests stay in flight", "G6 G8 G11", "owners.rs",
        "        record.in_flight.retain(|request| request.owner != owner.number);\n", "",
    ),
    Mutant(
        "a released owner's responses stay", "G11 G4", "owners.rs",
        "                    self.delete(Payload::Response(pending.id));\n", "",
    ),
    Mutant(
        "the index does not follow a session without owners", "G11", "lifecycle.rs", "        if behind || ahead || record", "        if behind || record",
    ),
    Mutant(
        "an expired session is not collected", "G11", "lifecycle.rs",
        "        if self.is_there()? {\n            self.move_in_index();\n            return Ok(false);\n        }\n        self.destroy()?;\n        Ok(true)",
        "        self.is_there()?;\n        self.move_in_index();\n        Ok(false)",
    ),
    # G12: not yours, not there
    Mutant(
        "anybody finds a bound session", "G12", "lifecycle.rs",
        "if record.id == id.as_str() && belongs(record.principal, principal) => self", "if record.id == id.as_str() && (belongs(record.principal, principal) || record.ttl > 0) => self",
    ),
    Mutant(
        "anybody acts in a bound session", "G12", "lifecycle.rs",
        "handle.incarnation && belongs(record.principal, handle.principal) => {", "handle.incarnation && (belongs(record.principal, handle.principal) || record.ttl > 0) => {",
    ),
    Mutant(
        "nobody in particular finds a bound session", "G12", "kind/transition.rs",
        "bound.is_none() || bound == principal", "bound.is_none() || principal.is_none() || bound == principal",
    ),
]


def prepare(tree: Path) -> None:
    """The pure modules as a crate of their own: it builds in seconds."""
    tree.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(tree / "src", ignore_errors=True)
    (tree / "src").mkdir()
    for module in MODULES:
        source = ROOT / "src" / module
        if source.is_dir():
            shutil.copytree(source, tree / "src" / module)
            # Other tests than the checker take time to build.
            (tree / "src" / module / "tests.rs").write_text("")
        else:
            shutil.copy2(source.with_suffix(".rs"), tree / "src")
    modules = "".join(f"pub mod {module};\n" for module in MODULES)
    (tree / "src" / "lib.rs").write_text(f"#![allow(dead_code, unused, unreachable_pub)]\n{modules}")
    manifest = (ROOT / "Cargo.toml").read_text()
    wanted = {"getrandom", "itoa", "libc", "parking_lot", "proptest", "serde", "serde_json", "sha2", "stateright", "subtle", "thiserror", "uuid"}
    dependencies = [
        line for line in re.findall(r"^[\w-]+ = .+$", manifest, re.MULTILINE) if line.split(" = ")[0] in wanted
    ]
    (tree / "Cargo.toml").write_text(
        f'[package]\nname = "{tree.name}"\nversion = "0.0.0"\nedition = "2024"\n[workspace]\n'
        "[profile.dev]\nopt-level = 1\ndebug = false\n[dependencies]\n" + "\n".join(dict.fromkeys(dependencies)) + "\n"
    )
    shutil.copy2(ROOT / "Cargo.lock", tree)


def build(tree: Path) -> tuple[Path | None, str]:
    """The checker as a program; else what the compiler says."""
    words = [str(ROOT / "scripts" / "cargo"), "test", "--quiet", "--lib", "--no-run", "--message-format=json-render-diagnostics"]
    environment = os.environ | {"CARGO_TARGET_DIR": str(TARGET)}
    try:
        answer = subprocess.run(words, cwd=tree, env=environment, capture_output=True, text=True, timeout=BUILD_SECONDS)
    except subprocess.TimeoutExpired:
        return None, f"not built after {BUILD_SECONDS} s"
    messages = [json.loads(line) for line in answer.stdout.splitlines() if line.startswith("{")]
    programs = [message["executable"] for message in messages if message.get("executable")]
    return (Path(programs[-1]), "") if answer.returncode == 0 and programs else (None, answer.stderr)


def command(program: Path, depth: int, mutant: int = 0) -> tuple[list[str], dict[str, str]]:
    """How the checker is run, and with which environment."""
    environment = os.environ | {"MCP_STATE_MODEL_DEPTH": str(depth), "MCP_STATE_MUTANT": str(mutant), "RUST_BACKTRACE": "0"}
    return [str(program), "session::model", "--nocapture"], environment


def explore(program: Path, depth: int, mutant: int = 0) -> str:
    """What the checker says."""
    words, environment = command(program, depth, mutant)
    try:
        answer = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired as late:
        told = (late.stdout or b"").decode().strip().splitlines()
        return f"not done after {SECONDS} s at depth {depth}; the last it said: {told[-1] if told else 'nothing'}"
    return answer.stdout + answer.stderr


def found_by(said: str) -> str:
    """The guarantee that the checker saw broken; nothing if it saw none."""
    match = re.search(r"^violation: (G\d+): ", said, re.MULTILINE)
    return match[1] if match else ""


def sow(tree: Path) -> list[str]:
    """Puts every mutant beside what it breaks. What is wrong with the list."""
    wrong = []
    for file in sorted({mutant.file for mutant in MUTANTS}):
        path = tree / "src" / file if "/" in file else tree / "src" / "session" / file
        source = path.read_text()
        bodies: dict[tuple[int, int], list[str]] = {}
        for number, mutant in enumerate(MUTANTS, 1):
            if mutant.file != file:
                continue
            if source.count(mutant.before) != 1:
                wrong.append(f"{mutant.name}: {file} has its text {source.count(mutant.before)} times: bring it up to date")
                continue
            at = source.index(mutant.before)
            start, end = body_around(source, at)
            if at + len(mutant.before) > end:
                wrong.append(f"{mutant.name}: its text reaches out of the function")
                continue
            broken = source[start:at] + mutant.after + source[at + len(mutant.before):end]
            bodies.setdefault((start, end), []).append(f"if *crate::BROKEN == {number} {{ return {{\n{broken}}}; }}\n")
        for (start, _), broken in sorted(bodies.items(), reverse=True):
            source = source[:start] + "".join(broken) + source[start:]
        path.write_text(source)
    lib = tree / "src" / "lib.rs"
    number = 'std::env::var("MCP_STATE_MUTANT").map_or(0, |number| number.parse().expect("a number"))'
    lib.write_text(
        f"{lib.read_text()}/// The mutant that runs; 0 for none.\n"
        f"pub static BROKEN: std::sync::LazyLock<usize> = std::sync::LazyLock::new(|| {number});\n"
    )
    return wrong


def body_around(source: str, at: int) -> tuple[int, int]:
    """Where the body of the function around a place begins and ends, in a source as rustfmt writes it."""
    head = list(re.finditer(r"^( *)(?:pub(?:\([^)]*\))? )?(?:const )?fn [^{}]*\{\n", source[:at], re.MULTILINE))[-1]
    return head.end(), source.index(f"\n{head[1]}}}\n", head.end() - 1) + 1


def check(program: Path, mutant: Mutant) -> tuple[bool, str]:
    """Whether the checker finds the mutant, and what it says."""
    said = ""
    for depth in DEPTHS:
        said = explore(program, depth, MUTANTS.index(mutant) + 1)
        if "0 violations" not in said:
            break
    guarantee = found_by(said)
    if guarantee:
        trace = re.search(r"^violation: .+\n((?:  .+\n)*)", said, re.MULTILINE)
        steps = len(trace[1].splitlines()) if trace else 0
        return guarantee in mutant.guarantees.split(), f"{guarantee} in {steps} steps"
    if "0 violations" in said:
        return False, "no violation"
    return False, said.strip().splitlines()[0] if said.strip() else "it said nothing"


def run_mutants(options: argparse.Namespace) -> int:
    chosen = [mutant for mutant in MUTANTS if options.only is None or options.only in mutant.name]
    if options.some is not None:
        seed = options.seed if options.seed is not None else random.randrange(1 << 16)
        print(f"mutants: {options.some} of {len(chosen)} (seed {seed})", flush=True)
        chosen = random.Random(seed).sample(chosen, min(options.some, len(chosen)))
    tree = ROOT / "build" / "mutants"
    prepare(tree)
    wrong = sow(tree)
    if wrong:
        print("\n".join(wrong))
        return 1
    program, said = build(tree)
    said = explore(program, DEPTHS[0]) if program else said
    if program is None or "0 violations" not in said:
        print(said)
        print("mutants: the state machine as it is does not pass")
        return 1
    missed = 0
    for mutant in chosen:
        start = time.monotonic()
        found, answer = check(program, mutant)
        missed += not found
        verdict = "found " if found else "MISSED"
        print(f"{verdict} {mutant.guarantees:<10} {mutant.name:<52} {answer} ({time.monotonic() - start:.0f} s)", flush=True)
    print(f"mutants: {len(chosen) - missed} found, {missed} not found")
    return 1 if missed or not chosen else 0


def run_explore(options: argparse.Namespace) -> int:
    tree = ROOT / "build" / "model"
    prepare(tree)
    program, said = build(tree)
    if program is None:
        print(said, file=sys.stderr)
        return 1
    words, environment = command(program, options.depth)
    return subprocess.run(words, env=environment).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description="The state machine under the model checker, and the checker under test.")
    commands = parser.add_subparsers(required=True)
    exploring = commands.add_parser("explore", help="every interleaving up to a depth")
    exploring.add_argument("--depth", type=int, default=5, help="steps of everything at once; its parts go deeper")
    exploring.set_defaults(run=run_explore)
    mutants = commands.add_parser("mutants", help="rules broken one by one")
    mutants.add_argument("--some", type=int, metavar="N", help="only as many")
    mutants.add_argument("--seed", type=int, default=None, help="chooses which")
    mutants.add_argument("--only", metavar="TEXT", help="those whose name has it")
    mutants.set_defaults(run=run_mutants)
    options = parser.parse_args()
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
