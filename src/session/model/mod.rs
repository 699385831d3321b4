//! The state machine in all interleavings: every sequence of operations, kills and passing time up to a depth, each step
//! compared with facts that are kept without the state machine ([`ghost`]).
//!
//! What runs is [`Transition`](crate::session::Transition) itself, driven as an engine and a store drive it ([`world`]): the
//! record is decoded before each operation and encoded after it, an operation that is unsure of a process runs again, effects
//! are carried out. A step that breaks a guarantee ends the search, which is breadth first: the trace is the shortest there is.
//!
//! The protocol is explored as a whole to the depth asked for, and in parts (see [`actions::Part`]) some steps deeper.
//!
//! `make check-model DEPTH=n` explores; `make mutants` breaks rules of the state machine one by one and sees that each is found
//! (tests/model.py).

mod actions;
mod ghost;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use stateright::{Checker, HasDiscoveries, Model, Property};

use actions::{Action, Part, Stride};
use ghost::Broken;
use world::World;

/// How deep everything at once is explored unless `MCP_STATE_MODEL_DEPTH` says otherwise.
const DEPTH: usize = 3;

struct Exploration {
    part: Part,
    depth: usize,
}

impl Model for Exploration {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.steps < self.depth && world.broken.is_none() {
            self.part.actions(world, actions);
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.steps += 1;
        let broken = match catch_unwind(AssertUnwindSafe(|| Stride::take(&mut next, action))) {
            Ok(kept) => kept.err(),
            Err(_) => Some(Broken { guarantee: "G8", what: "the state machine panics".into() }),
        };
        broken.into_iter().for_each(|broken| next.spoil(broken));
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        macro_rules! hold {
            ($($guarantee:literal)*) => { vec![$(Property::always($guarantee, |_: &Self, world: &World| {
                world.broken.as_ref().is_none_or(|broken| broken.guarantee != $guarantee)
            }),)*] };
        }
        hold!["G2" "G3" "G4" "G5" "G6" "G7" "G8" "G9" "G10" "G11" "G12"]
    }
}

#[test]
fn every_interleaving_keeps_the_guarantees() {
    let asked = std::env::var("MCP_STATE_MODEL_DEPTH").ok();
    let depth: usize = asked.map_or(DEPTH, |depth| depth.parse().expect("MCP_STATE_MODEL_DEPTH is a number of steps"));
    let (mut states, mut unique) = (0, 0);
    for part in Part::ALL {
        let depth = depth + part.deeper();
        let exploration = Exploration { part, depth };
        let checker = exploration.checker().finish_when(HasDiscoveries::AnyFailures).threads(1);
        let checker = checker.target_max_depth(depth + 2).spawn_bfs().join();
        println!(
            "model: {:<10} {:>10} states, {:>9} unique, depth {depth}",
            part.name(),
            checker.state_count(),
            checker.unique_state_count()
        );
        states += checker.state_count();
        unique += checker.unique_state_count();
        if let Some((guarantee, path)) = checker.discoveries().into_iter().next() {
            let last = path.last_state().clone();
            println!("violation: {guarantee}: {}", last.broken.map_or(String::new(), |broken| broken.what));
            path.into_actions().iter().for_each(|action| println!("  {action:?}"));
            panic!("{guarantee} does not hold");
        }
    }
    println!("model: {states} states, {unique} unique, depth {depth}, 0 violations");
}
