//! The messages of `docs/reference/protocol.md` are sent to a daemon, which answers as the document says.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use crate::running_daemon::{RunningDaemon, ask_bytes};

#[test]
fn the_daemon_answers_as_its_document_says() {
    let document = include_str!("../../../../docs/reference/protocol.md");
    let daemon = RunningDaemon::start();
    let mut connection = daemon.connection();
    let mut sent = 0;
    for part in document.split("```json\n").skip(1) {
        let (message, rest) = part.split_once("```\n").unwrap();
        let expected = rest.strip_prefix("→ `").unwrap().split('`').next().unwrap();
        let answer = ask_bytes(&mut connection, message.as_bytes());
        assert_eq!(answer["type"], expected, "{message}: {answer}");
        sent += 1;
    }
    assert!(sent >= 9, "{sent}");
}
