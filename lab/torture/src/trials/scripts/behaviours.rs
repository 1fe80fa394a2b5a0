//! What references and ops do wrong, and what has to come of it.

/// What comes of it.
#[derive(Debug, Clone, Copy)]
pub enum Expected {
    /// It does no harm: the verdict is the right one.
    Right,
    /// An error, or a failure of the op, that has one of these words.
    Said(&'static [&'static str]),
}

/// Whose stderr has to be in the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// Everybody's: it failed by itself.
    Always,
    /// A reference's: an op that returned such a thing is judged like any other that returned something wrong.
    OfReferences,
    Never,
}

/// Something that a script or a function does.
#[derive(Debug, Clone, Copy)]
pub struct Behaviour {
    /// Its name, which it also writes to stderr.
    pub name: &'static str,
    /// What a script does after it has read `request`; `answer()` prints the right document.
    pub script: Option<(&'static str, Expected)>,
    /// What a function does with its `input`.
    pub callable: Option<(&'static str, Expected)>,
    /// Whether it never ends by itself: it is given little time.
    pub endless: bool,
    /// Whether what it wrote to stderr has to be in the error.
    pub in_its_words: Words,
}

use Expected::{Right, Said};

const TIMED_OUT: Expected = Said(&["did not finish within"]);
const NOT_ONE_DOCUMENT: Expected = Said(&["not one JSON document"]);
const TOO_MUCH: Expected = Said(&["bytes of output, the most that is allowed"]);

pub const BEHAVIOURS: &[Behaviour] = &[
    Behaviour {
        name: "hangs",
        script: Some(("time.sleep(600)", TIMED_OUT)),
        callable: Some(("time.sleep(600)", TIMED_OUT)),
        endless: true,
        in_its_words: Words::Always,
    },
    Behaviour {
        name: "floods stdout",
        script: Some(("while True: print('x' * 100000)", TOO_MUCH)),
        callable: Some(("return numpy.zeros(1 << 24, numpy.float64)", TOO_MUCH)),
        endless: false,
        in_its_words: Words::Always,
    },
    Behaviour {
        name: "floods stderr",
        script: Some(("for _ in range(200): print('y' * 100000, file=sys.stderr)\nanswer()", Right)),
        callable: Some(("for _ in range(200): print('y' * 100000, file=sys.stderr)\nreturn input + 0", Right)),
        endless: false,
        in_its_words: Words::Never,
    },
    Behaviour {
        name: "prints before the document",
        script: Some(("print('loading the model')\nanswer()", NOT_ONE_DOCUMENT)),
        callable: Some(("print('loading the model')\nreturn input + 0", Right)),
        endless: false,
        in_its_words: Words::Always,
    },
    Behaviour {
        name: "answers twice",
        script: Some(("answer()\nanswer()", NOT_ONE_DOCUMENT)),
        callable: Some(("return input + 0, input + 0", Said(&["2 outputs came back"]))),
        endless: false,
        in_its_words: Words::Never,
    },
    Behaviour {
        name: "forks a child that keeps the pipe",
        script: Some(("if os.fork() == 0:\n    note()\n    time.sleep(600)\nanswer()", Right)),
        callable: Some(("if os.fork() == 0:\n    note()\n    time.sleep(600)\nreturn input + 0", Right)),
        endless: false,
        in_its_words: Words::Never,
    },
    Behaviour {
        name: "has a grandchild that leaves the group",
        script: Some((
            "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        note()\n        time.sleep(600)\n    os._exit(0)\n\
             time.sleep(0.1)\nanswer()",
            Right,
        )),
        callable: Some((
            "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        note()\n        time.sleep(600)\n    os._exit(0)\n\
             time.sleep(0.1)\nreturn input + 0",
            Right,
        )),
        endless: false,
        in_its_words: Words::Never,
    },
    Behaviour {
        name: "eats memory",
        script: Some(("kept = bytearray(64 << 30)", Said(&["MemoryError"]))),
        callable: Some(("kept = bytearray(64 << 30)", Said(&["MemoryError"]))),
        endless: false,
        in_its_words: Words::Always,
    },
    Behaviour {
        name: "exits with nothing",
        script: Some(("sys.exit(0)", Said(&["printed nothing"]))),
        callable: Some(("os._exit(0)", Said(&["exited with status 0"]))),
        endless: false,
        in_its_words: Words::Always,
    },
    Behaviour {
        name: "segfaults",
        script: Some(("import ctypes\nctypes.string_at(0)", Said(&["SIGSEGV"]))),
        callable: Some(("import ctypes\nctypes.string_at(0)", Said(&["SIGSEGV"]))),
        endless: false,
        in_its_words: Words::Always,
    },
    Behaviour {
        name: "raises",
        script: Some(("raise RuntimeError('out of luck')", Said(&["RuntimeError: out of luck"]))),
        callable: Some(("raise RuntimeError('out of luck')", Said(&["RuntimeError: out of luck"]))),
        endless: false,
        in_its_words: Words::Always,
    },
    Behaviour {
        name: "returns wrong names",
        script: Some((
            "print(json.dumps({'outputs': {'one': tensor, 'other': tensor}}))",
            Said(&["2 outputs came back (one, other)"]),
        )),
        callable: Some(("return {'one': input + 0, 'other': input + 0}", Said(&["2 outputs came back (one, other)"]))),
        endless: false,
        in_its_words: Words::Always,
    },
    Behaviour {
        name: "returns wrong shapes",
        script: Some((
            "tensor['shape'] = [1] + tensor['shape']\nanswer()",
            Said(&["has shape [1, ", "has shape (1, ", "shape [1, ", "shape (1, "]),
        )),
        callable: Some(("return input.reshape((1,) + input.shape) + 0", Said(&["shape [1, ", "shape (1, "]))),
        endless: false,
        in_its_words: Words::OfReferences,
    },
    Behaviour {
        name: "returns wrong dtypes",
        script: Some((
            "tensor['dtype'] = {'float32': 'int32', 'float64': 'int64'}[tensor['dtype']]\nanswer()",
            Said(&["int64", "int32"]),
        )),
        callable: Some(("return input.astype(numpy.int32)", Said(&["int32"]))),
        endless: false,
        in_its_words: Words::OfReferences,
    },
    Behaviour {
        name: "returns wrong byte counts",
        script: Some((
            "tensor['data'] = base64.b64encode(base64.b64decode(tensor['data']) + bytes(3)).decode()\nanswer()",
            Said(&["bytes, but"]),
        )),
        callable: None,
        endless: false,
        in_its_words: Words::Always,
    },
    Behaviour {
        name: "changes the folder",
        script: Some(("os.chdir('/')\nanswer()", Right)),
        callable: Some(("os.chdir('/')\nreturn input + 0", Right)),
        endless: false,
        in_its_words: Words::Never,
    },
    Behaviour {
        name: "deletes its input",
        script: Some(("os.close(0)\nanswer()", Right)),
        callable: Some(("kept = input + 0\ninput[...] = 3\nreturn kept", Said(&["input"]))),
        endless: false,
        in_its_words: Words::Never,
    },
    Behaviour {
        name: "deletes its own file",
        script: Some(("os.remove(PATH)\nanswer()", Said(&["No such file", "there is no script"]))),
        callable: Some(("os.path.exists(PATH) and os.remove(PATH)\nreturn input + 0", Right)),
        endless: false,
        in_its_words: Words::Never,
    },
    Behaviour {
        name: "closes stdout",
        script: Some((
            "os.close(1)\nanswer()",
            Said(&["printed nothing", "Bad file descriptor", "exited with status 120", "exited with status 1"]),
        )),
        callable: Some(("try: os.close(1)\nexcept OSError: pass\nreturn input + 0", Right)),
        endless: false,
        in_its_words: Words::Never,
    },
    Behaviour {
        name: "sleeps after answering",
        script: Some(("answer()\nsys.stdout.flush()\ntime.sleep(600)", TIMED_OUT)),
        callable: None,
        endless: true,
        in_its_words: Words::Always,
    },
];

/// How something in Python is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A reference, one process a call.
    ColdReference,
    /// A reference in a worker.
    WarmReference,
    /// An op's script, one process a call.
    ColdScript,
    /// An op's script in a worker.
    WarmScript,
    Function,
}

impl Way {
    pub fn is_reference(self) -> bool {
        matches!(self, Way::ColdReference | Way::WarmReference)
    }

    pub const ALL: [Way; 5] = [Way::ColdReference, Way::WarmReference, Way::ColdScript, Way::WarmScript, Way::Function];

    /// Whether nothing of it outlives its call; a worker keeps what a script or function left running until it ends.
    pub fn is_cold(self) -> bool {
        matches!(self, Way::ColdReference | Way::ColdScript)
    }

    /// What is run, and what has to come of it.
    pub fn part(self, behaviour: &Behaviour) -> Option<(&'static str, Expected)> {
        if self == Way::Function { behaviour.callable } else { behaviour.script }
    }
}
