//! Faults of the store's place and files, each injected on purpose: whatever happens is a typed error, a documented fresh start
//! or nothing at all; never a crash, a hang, or data that is wrong.
//!
//! Every fault is injected into a process of its own (see [`roles`]), which runs under a deadline. The run ends with the line
//! `faults: N injected …`. `MCP_STATE_FAULTS=all` (`make faults`) injects all of them, else a sample that `MCP_STATE_SEED`
//! chooses.
#![allow(missing_docs, unreachable_pub)]

mod bounds;
#[path = "../common/mod.rs"]
mod common;
mod files;
mod live;
mod map;
mod places;
mod roles;
mod strangers;
mod tally;
mod times;
mod writes;

use std::process::ExitCode;

use common::process::{self, Result, WORKER_SECONDS};
use libtest_mimic::{Arguments, Trial};

/// A store that writes through its map, which has 16 MB.
const WRITE_MAP: &str = "durability=none&write_map=1&max_store_bytes=4M";
/// Stores that lose, or suffer, different things.
const KINDS: [&str; 3] = ["durability=none", "durability=sync", WRITE_MAP];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|first| first == "--role") {
        process::deadline(WORKER_SECONDS);
        roles::play(&arguments[2..]);
        return ExitCode::SUCCESS;
    }
    process::deadline(if is_long() { 3600 } else { process::TEST_SECONDS });
    process::copy_program();
    let shim = writes::build_shim();
    type Test = fn() -> Result;
    let tests: Vec<(&str, Test)> = vec![
        ("g10_a_call_that_writes_fails_once_with_enospc", || writes::every_call("once", libc::ENOSPC)),
        ("g10_a_call_that_writes_fails_once_with_eio", || writes::every_call("once", libc::EIO)),
        ("g10_all_calls_that_write_fail_from_one_on_with_enospc", || writes::every_call("stays", libc::ENOSPC)),
        ("g10_all_calls_that_write_fail_from_one_on_with_eio", || writes::every_call("stays", libc::EIO)),
        ("g10_a_write_is_cut_short_and_no_more_can_be_written", || writes::every_call("short", libc::ENOSPC)),
        ("g8_a_process_is_killed_before_a_call_that_writes", || writes::every_call("kill", 0)),
        ("g8_a_process_is_killed_after_a_call_that_writes", || writes::every_call("killed", 0)),
        ("a_file_is_cut_or_lengthened", files::lengths),
        ("a_file_is_garbage_or_has_some_in_it", files::garbage),
        ("a_file_is_a_symlink_a_directory_a_pipe_or_has_two_names", files::other_kinds),
        ("a_file_belongs_to_another_user", files::strangers),
        ("a_meta_page_has_garbage_in_each_field", files::meta_pages),
        ("a_data_file_that_is_sound_passes_whatever_was_done_to_it", files::sound),
        ("a_file_is_removed_under_running_servers", live::removed),
        ("a_file_is_replaced_under_running_servers", live::replaced),
        ("the_directory_loses_its_permissions_under_a_running_server", live::permissions),
        ("the_file_system_becomes_read_only_between_two_servers", live::read_only),
        ("a_stopped_reader_fills_the_store_and_is_named", live::stopped_reader),
        ("g10_a_stopped_reader_does_not_let_the_file_grow_without_bound", bounds::stopped_reader),
        ("g10_a_memory_cgroup_is_full_for_the_store_before_the_kernel_kills", bounds::memory_cgroup),
        ("g10_a_limited_file_size_is_a_full_store_and_no_signal", bounds::file_size),
        ("a_limited_address_space_gets_a_smaller_map_or_an_error_that_names_it", bounds::address_space),
        ("a_process_without_thread_specific_keys_is_told_so", bounds::keys),
        ("a_copy_on_write_file_system_is_refused_by_name", bounds::copy_on_write),
        ("a_process_stopped_inside_a_write_blocks_writers_until_it_goes_on", live::stopped_writer),
        ("two_library_versions_meet_at_one_store", live::two_versions),
        ("a_recreated_container_takes_over_and_two_living_ones_are_kept_apart", live::containers),
        ("a_stamp_names_another_map_at_rest_and_under_running_servers", map::stamps),
        ("a_map_that_was_not_made_to_the_end_is_begun_anew", map::unsettled),
        ("a_map_moves_with_a_reset_under_running_servers", map::reset),
        ("a_map_that_finds_no_room_leaves_nothing_and_is_made_when_there_is_room", map::no_room),
        ("a_directory_with_anything_of_others_in_it_is_refused_by_name_and_left_as_it_is", places::strangers_files),
        ("a_place_that_is_made_under_running_servers_splits_no_store", places::run_made_later),
        ("several_users_have_a_folder_each_in_run", places::run_of_several_users),
        ("nothing_but_a_stores_own_files_is_ever_removed", places::only_its_own),
        ("a_guest_of_an_older_library_makes_sessions_that_the_older_library_reads", times::guest_of_older),
        ("a_store_with_a_stamp_of_an_older_library_opens_and_keeps_its_sessions", times::old_stamp),
        ("a_process_of_another_time_namespace_is_refused_and_changes_nothing", times::time_namespace),
        ("a_boot_that_cannot_be_read_is_no_boot_that_is_known", times::unknown_boot),
        ("a_look_begins_no_store_afresh", times::looks),
        ("a_clock_that_is_set_late_ends_no_session_at_the_next_boot", times::clock_set),
        ("a_process_stopped_while_it_opens_the_store_is_named", times::stopped_opener),
        ("another_user_makes_the_place_of_a_store_first", strangers::squatters),
        ("another_user_can_neither_read_nor_write_nor_replace_a_store", strangers::snoopers),
    ];
    let trials = tests.into_iter().map(|(name, test)| Trial::test(name, test)).collect();
    let exit_code = libtest_mimic::run(&Arguments::from_args(), trials).exit_code();
    println!("{}", tally::line());
    process::remove_copy();
    drop(shim);
    exit_code
}

/// Whether all faults are asked for.
fn is_long() -> bool {
    std::env::var("MCP_STATE_FAULTS").is_ok_and(|value| value == "all")
}

/// What chooses the sample and the garbage.
fn seed() -> u64 {
    std::env::var("MCP_STATE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}
