//! A reference that never reads its 100 MB of input.

use std::time::{Duration, Instant};

use gpuemu_model::tensor_data::{NamedTensorData, TensorData};
use gpuemu_tensor::DType;
use gpuemu_wire::protocol::{Request, ValidateOp};
use gpuemu_wire::shared_memory::Segment;

use crate::daemon_process::DaemonProcess;

/// Bytes of the input.
const BYTES: usize = 100 << 20;

/// How long it may take, most of which is the copying of what nobody reads.
const LONGEST: Duration = Duration::from_secs(40);

const CONFIG: &str = "[project]\nname = \"p\"\nframework = \"numpy\"\n\n[[ops]]\nname = \"op\"\n\
    signature = \"input[N] -> out[N]\"\ndtypes = [\"float32\"]\nreference = \"script.py\"\ntimeout = 30\n";

const SCRIPT: &str = "import sys\nprint('words of ignores its input', file=sys.stderr)\nprint('I did not look')\n";

/// Has it asked; what did not hold.
pub fn ignore(daemon: &DaemonProcess) -> Result<(), String> {
    let project = daemon.project("ignores-its-input", &[("gpuemu.toml", CONFIG), ("script.py", SCRIPT)])?;
    let mut segment = Segment::create().map_err(|error| error.to_string())?;
    let place = segment.push(&vec![0; BYTES]).map_err(|error| error.to_string())?;
    let (dtype, shape) = (DType::F32, vec![BYTES / DType::F32.size()]);
    let data = TensorData { dtype, shape, strides: None, offset: 0, data: None, binary: None, shared: Some(place) };
    let mut inputs = NamedTensorData::default();
    inputs.0.push(("input".to_string(), data.clone()));
    let request = Request::ValidateOp(ValidateOp {
        project,
        op_name: "op".to_string(),
        inputs,
        output: Some(data),
        outputs: None,
        kwargs: Default::default(),
    });
    let start = Instant::now();
    let words = match daemon.client()?.call(&request) {
        Ok(_) => return Err("an input that the reference never read is judged".to_string()),
        Err(error) => error.to_string(),
    };
    if start.elapsed() > LONGEST {
        return Err(format!("it took {:.0} s to say so", start.elapsed().as_secs_f64()));
    }
    let said = ["not one JSON document", "I did not look", "words of ignores its input"];
    if said.iter().all(|text| words.contains(text)) {
        Ok(())
    } else {
        Err(format!("one of {said:?} is not said: {words}"))
    }
}
