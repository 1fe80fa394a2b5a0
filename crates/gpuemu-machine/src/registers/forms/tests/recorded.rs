//! Answers of an NVIDIA H200, four or more of each instruction.

use super::*;

/// Code, the registers that are given, those that are read, and their values.
struct Recording<'a> {
    code: &'a str,
    given: Vec<&'a str>,
    read: Vec<&'a str>,
    values: Vec<Vec<u64>>,
}

fn recordings() -> Vec<Recording<'static>> {
    let mut recordings: Vec<Recording<'_>> = Vec::new();
    for line in include_str!("recorded.txt").lines().filter(|line| !line.starts_with('#')) {
        if let Some((code, registers)) = line.split_once(" <- ") {
            let (given, read) = registers.split_once(" -> ").unwrap();
            recordings.push(Recording {
                code,
                given: given.split(' ').collect(),
                read: read.split(' ').collect(),
                values: Vec::new(),
            });
        } else {
            let values = line.split(' ').map(|value| u64::from_str_radix(value, 16).unwrap()).collect();
            recordings.last_mut().unwrap().values.push(values);
        }
    }
    recordings
}

/// Fills a file with a recording, in lanes from `first` on, and says what the lanes then should hold.
fn fill(file: &mut RegisterFile, recording: &Recording<'_>, first: usize) {
    for (lane, values) in recording.values.iter().enumerate() {
        for (name, value) in recording.given.iter().zip(values) {
            write(file, register(name), first + lane, *value);
        }
    }
}

#[test]
fn every_recorded_answer_is_given_at_every_level() {
    let recordings = recordings();
    assert!(recordings.len() > 700, "{}", recordings.len());
    for recording in &recordings {
        for level in LEVELS {
            let mut file = RegisterFile::new(ROWS as usize);
            fill(&mut file, recording, 13);
            run(recording.code, &mut file, u32::MAX, Approximation::Chip, level);
            for (lane, values) in recording.values.iter().enumerate() {
                for (name, expected) in recording.read.iter().zip(&values[recording.given.len()..]) {
                    let got = read(&file, register(name), 13 + lane);
                    let (code, given) = (recording.code, &values[..recording.given.len()]);
                    assert_eq!(
                        got, *expected,
                        "{code} at {level:?}: {name} of {given:x?} is {got:x}, not {expected:x}"
                    );
                }
            }
        }
    }
}

/// What does not take part keeps what it held, whatever the instruction.
#[test]
fn lanes_outside_of_the_mask_are_kept() {
    let mask = 0x0F0F_3355;
    for recording in recordings().iter().filter(|recording| !recording.code.contains(';')) {
        let mut file = RegisterFile::new(ROWS as usize);
        fill(&mut file, recording, 0);
        for name in &recording.read {
            (0..LANES).for_each(|lane| write(&mut file, register(name), lane, 0x5A5A_5A5A_5A5A_5A5A));
        }
        let (before, mut after, mut all) = (file.clone(), file.clone(), file);
        run(recording.code, &mut after, mask, Approximation::Chip, Level::detect());
        run(recording.code, &mut all, u32::MAX, Approximation::Chip, Level::detect());
        for name in &recording.read {
            for lane in 0..LANES {
                let source = if mask >> lane & 1 == 1 { &all } else { &before };
                let register = register(name);
                assert_eq!(read(&after, register, lane), read(source, register, lane), "{}", recording.code);
            }
        }
    }
}

/// A number that depends on nothing but its place.
fn noise(place: u64) -> u64 {
    let mixed = (place + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9).rotate_left(31)
}

/// Whatever the registers hold, nothing panics, and every level gives the same.
#[test]
fn levels_agree_on_any_registers() {
    for (number, recording) in recordings().iter().enumerate() {
        for round in 0..8 {
            let mut file = RegisterFile::new(ROWS as usize);
            for (place, name) in recording.given.iter().enumerate() {
                for lane in 0..LANES {
                    let value = noise((number * 8 + round) as u64 * 4096 + place as u64 * 32 + lane as u64);
                    // Exponents and shifts of all sizes, and small numbers too.
                    let value = if round % 2 == 0 { value } else { value >> (lane % 8 * 8) };
                    write(&mut file, register(name), lane, value);
                }
            }
            let mut files = LEVELS.map(|_| file.clone());
            for (file, level) in files.iter_mut().zip(LEVELS) {
                run(recording.code, file, u32::MAX, Approximation::Chip, level);
            }
            let [baseline, others @ ..] = &files;
            for other in others {
                assert!(other.rows() == baseline.rows(), "{}", recording.code);
            }
            run(recording.code, &mut file, u32::MAX, Approximation::Correct, Level::Baseline);
        }
    }
}
