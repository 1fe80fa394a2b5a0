//! Frames of the wire: the opening, prefixes, stacks of request ids, and binary frames in a body.

use gpuemu_wire::protocol::Frame;
use gpuemu_wire::sp;

use super::Target;

pub const TARGET: Target = Target {
    name: "frame",
    run,
    words: &["\0SP\0\0\x30\0\0", "GPUEMU\u{1}", "{\"type\":\"Ping\"}", "\u{1}\0\0\0\0\0\0\0\u{4}"],
    thousands: 3_000,
    thousands_short: 80,
};

fn run(bytes: &[u8]) {
    if let Some(opening) = bytes.first_chunk() {
        let known = sp::check_handshake(*opening, sp::REQUEST).is_ok();
        assert_eq!(known, *opening == sp::handshake(sp::REQUEST));
    }
    if let Some((prefix, body)) = bytes.split_first_chunk::<{ sp::PREFIX_BYTES }>()
        && let Ok(length) = sp::body_length(*prefix)
    {
        assert_eq!(sp::prefix(length as usize), *prefix);
        read_body(&body[..body.len().min(length as usize)]);
    }
    read_body(bytes);
    read_message(bytes);
}

fn read_body(body: &[u8]) {
    let Ok(stack) = sp::stack_length(body) else { return };
    assert!(stack <= body.len() && stack <= 4 * sp::MAX_STACK_WORDS && stack.is_multiple_of(4));
    read_message(&body[stack..]);
}

fn read_message(message: &[u8]) {
    let Ok(frame) = Frame::parse(message) else { return };
    assert!(frame.header.len() + frame.payload.len() <= message.len());
    let again = Frame::build(frame.header, frame.payload);
    assert_eq!(Frame::parse(&again), Ok(frame));
}
