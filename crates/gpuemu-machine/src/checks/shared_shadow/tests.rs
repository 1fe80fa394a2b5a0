//! What shared memory remembers of who read and wrote it.

use super::*;

const THREAD: Accessor = Accessor { warp: 0, lane: 0 };
const OTHER: Accessor = Accessor { warp: 1, lane: 3 };

fn run_of(by: Accessor) -> SharedRun {
    SharedRun { offset: 4, lane_bytes: 4, lanes: 1, first: by.lane as usize }
}

fn read(shadow: &mut SharedShadow, by: Accessor, clocks: &Clocks) -> Option<Conflict> {
    let stamp = Stamp::new(by.warp, 7, clocks);
    shadow.read(run_of(by), stamp, clocks, |_| false).map(|(_, conflict)| conflict)
}

fn write(shadow: &mut SharedShadow, by: Accessor, clocks: &Clocks, same: bool) -> Option<Conflict> {
    let stamp = Stamp::new(by.warp, 9, clocks);
    let conflict = shadow.before_write(run_of(by), stamp, clocks, |_| false, |_, _| same);
    shadow.write(run_of(by), stamp);
    conflict.map(|(_, conflict)| conflict)
}

#[test]
fn a_barrier_between_write_and_read_is_needed() {
    let mut clocks = Clocks::new(0, 2);
    let mut shadow = SharedShadow::new(64, 4, false);
    assert_eq!(read(&mut shadow, THREAD, &clocks), Some(Conflict::Uninitialised));
    clocks.meet(&[0, 1], None);
    assert_eq!(write(&mut shadow, THREAD, &clocks, false), None);
    assert_eq!(read(&mut shadow, THREAD, &clocks), None);
    assert!(matches!(read(&mut shadow, OTHER, &clocks), Some(Conflict::Race { step: 9, other: THREAD, wrote: true })));
    clocks.meet(&[0, 1], None);
    assert_eq!(read(&mut shadow, OTHER, &clocks), None);
    assert!(matches!(write(&mut shadow, THREAD, &clocks, false), Some(Conflict::Race { step: 7, wrote: false, .. })));
    clocks.meet(&[0, 1], None);
    assert_eq!(write(&mut shadow, THREAD, &clocks, false), None);
    assert_eq!(write(&mut shadow, OTHER, &clocks, true), None, "the same value is no harm");
    assert!(write(&mut shadow, THREAD, &clocks, false).is_some());
}

#[test]
fn several_readers_are_all_remembered() {
    let mut clocks = Clocks::new(0, 3);
    let mut shadow = SharedShadow::new(64, 4, false);
    write(&mut shadow, THREAD, &clocks, false);
    clocks.meet(&[0, 1, 2], None);
    read(&mut shadow, THREAD, &clocks);
    read(&mut shadow, OTHER, &clocks);
    read(&mut shadow, THREAD, &clocks);
    assert_eq!(write(&mut shadow, THREAD, &clocks, false), Some(Conflict::Unsure), "warp 1 has read it too");
}

#[test]
fn warps_that_met_are_told_from_those_that_did_not_where_every_reader_is_kept() {
    let mut clocks = Clocks::new(0, 3);
    let mut shadow = SharedShadow::new(64, 4, true);
    write(&mut shadow, THREAD, &clocks, false);
    clocks.meet(&[0, 1, 2], None);
    read(&mut shadow, THREAD, &clocks);
    read(&mut shadow, OTHER, &clocks);
    clocks.meet(&[0, 1], None);
    assert_eq!(write(&mut shadow, THREAD, &clocks, false), None, "warp 2 has not read it");
    clocks.meet(&[0, 1, 2], None);
    read(&mut shadow, THREAD, &clocks);
    read(&mut shadow, OTHER, &clocks);
    clocks.meet(&[0, 2], None);
    let race = Conflict::Race { step: 7, other: OTHER, wrote: false };
    assert_eq!(write(&mut shadow, THREAD, &clocks, false), Some(race));
}

#[test]
fn a_lane_that_read_before_its_warp_met_is_no_reader_beside_another() {
    let mut clocks = Clocks::new(0, 2);
    let mut shadow = SharedShadow::new(64, 4, false);
    let neighbour = Accessor { lane: 1, ..THREAD };
    write(&mut shadow, THREAD, &clocks, false);
    clocks.meet(&[0, 1], None);
    read(&mut shadow, neighbour, &clocks);
    clocks.meet(&[0], None);
    read(&mut shadow, THREAD, &clocks);
    assert_eq!(write(&mut shadow, THREAD, &clocks, false), None);
}

#[test]
fn a_barrier_of_the_warp_orders_its_lanes() {
    let mut clocks = Clocks::new(0, 2);
    let mut shadow = SharedShadow::new(64, 4, false);
    let neighbour = Accessor { lane: 1, ..THREAD };
    write(&mut shadow, THREAD, &clocks, false);
    assert!(read(&mut shadow, neighbour, &clocks).is_some());
    clocks.meet(&[0], None);
    assert_eq!(read(&mut shadow, neighbour, &clocks), None);
    read(&mut shadow, THREAD, &clocks);
    clocks.meet(&[0], None);
    assert_eq!(write(&mut shadow, THREAD, &clocks, false), None, "both readers are lanes of the warp");
}

#[test]
fn a_copy_in_flight_belongs_to_nobody() {
    let mut clocks = Clocks::new(0, 2);
    let mut shadow = SharedShadow::new(64, 4, false);
    let copy = SharedRun { offset: 0, lane_bytes: 16, lanes: 1, first: 0 };
    assert_eq!(shadow.begin_copy(copy, Stamp::new(0, 3, &clocks), &clocks), None);
    assert_eq!(read(&mut shadow, OTHER, &clocks), Some(Conflict::InFlight { step: 3, by: THREAD }));
    shadow.end_copy(copy, 0, &clocks);
    assert_eq!(read(&mut shadow, THREAD, &clocks), None);
    assert!(read(&mut shadow, OTHER, &clocks).is_some());
    clocks.meet(&[0, 1], None);
    assert_eq!(read(&mut shadow, OTHER, &clocks), None);
}
