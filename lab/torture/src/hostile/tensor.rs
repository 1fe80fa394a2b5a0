//! Tensors of messages, `.npy` files, kept snapshots and layouts.

use gpuemu_model::tensor_data::{SharedMemory, TensorData};
use gpuemu_store::{Snapshot, SnapshotTensor};
use gpuemu_tensor::npy::{Npy, write};
use gpuemu_tensor::{DType, Layout, Storage, Tensor};
use gpuemu_wire::protocol::Frame;

use super::Target;

/// The target. The first byte says which of the four is read.
pub const TARGET: Target = Target {
    name: "tensor",
    run,
    words: &[
        "\"strides\":[",
        "\"offset\":",
        "\"shape\":[",
        "\"data\":\"AAAA\"",
        "\"binary\":{\"offset\":0,\"length\":4}",
        "\"float8_e4m3fn\"",
        "\"bfloat16\"",
        "\"int64\"",
        "\"bool\"",
        "NUMPY",
        "'descr': '<f4'",
        "'fortran_order': True",
        "'shape': (",
        "|V1",
        "18446744073709551615",
    ],
    thousands: 2_000,
    thousands_short: 100,
};

/// Elements of a tensor that are looked at one by one: strides of 0 make much of little.
const MOST_ELEMENTS: usize = 1 << 14;

fn run(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 4 {
        0 => read_message(bytes),
        1 => read_file(bytes),
        2 => read_snapshot(bytes),
        _ => place(bytes),
    }
}

fn read_message(bytes: &[u8]) {
    let Ok(frame) = Frame::parse(bytes) else { return };
    if let Ok(data) = serde_json::from_slice::<TensorData>(frame.header) {
        let _ = data.length();
        read(&data, frame.payload);
    }
}

/// Reads the tensor of a message and looks at all of it.
pub fn read(data: &TensorData, payload: &[u8]) {
    let shared = |place: &SharedMemory| match place.length {
        length @ 0..=4096 => Ok(Storage::filled(length as usize, 7)),
        length => Err(format!("{length} bytes are not there")),
    };
    if let Ok(tensor) = data.tensor(payload, shared) {
        look_at(&tensor);
    }
}

fn look_at(tensor: &Tensor) {
    if tensor.len() > MOST_ELEMENTS {
        return;
    }
    assert_eq!(tensor.to_f64().len(), tensor.len());
    let bytes = tensor.to_contiguous_bytes();
    assert_eq!(bytes.len(), tensor.len() * tensor.dtype().size());
    assert_eq!(tensor.to_contiguous().to_contiguous_bytes(), bytes);
    let kept = [("x".to_string(), tensor.clone())];
    let back = Snapshot::of(&kept, 1 << 20).tensors();
    let same = back.as_ref().is_ok_and(|back| back.iter().all(|(_, found)| found.to_contiguous_bytes() == bytes));
    assert!(same, "a snapshot gives something else back: {back:?}");
    let file = write(tensor.dtype(), tensor.shape(), &bytes);
    let read = Npy::read(&file).map(|array| array.shape);
    assert_eq!(read.as_ref().ok(), Some(&tensor.shape().to_vec()), "{read:?}");
}

fn read_file(bytes: &[u8]) {
    let Ok(array) = Npy::read(bytes) else { return };
    for dtype in DType::ALL {
        if let Ok(data) = array.bits_of(dtype)
            && let Ok(tensor) = Tensor::contiguous(dtype, array.shape.clone(), data)
        {
            look_at(&tensor);
        }
    }
}

fn read_snapshot(mut bytes: &[u8]) {
    let mut word = || {
        let (word, rest) = bytes.split_first_chunk::<8>()?;
        bytes = rest;
        Some(u64::from_le_bytes(*word))
    };
    let Some(form) = word() else { return };
    let rank = (form >> 8) % 6;
    let Some(shape) = (0..rank).map(|_| word()).collect() else { return };
    let Some(strides) = (0..rank).map(|_| Some(word()? as i64)).collect() else { return };
    let (Some(offset), Some(storage_bytes)) = (word(), word()) else { return };
    let dtype = DType::ALL[form as usize % DType::ALL.len()].name().to_string();
    let (name, compressed) = ("x".to_string(), bytes.to_vec());
    let input = SnapshotTensor { name, dtype, shape, strides, offset, storage_bytes, compressed };
    if let Ok(tensors) = (Snapshot { inputs: vec![input] }).tensors() {
        tensors.iter().for_each(|(_, tensor)| look_at(tensor));
    }
}

fn place(bytes: &[u8]) {
    let [dtype, layout, rank, rest @ ..] = bytes else { return };
    let dtype = DType::ALL[usize::from(*dtype) % DType::ALL.len()];
    let Some((shape, elements)) = rest.split_at_checked(usize::from(rank % 6)) else { return };
    let shape: Vec<usize> = shape.iter().map(|size| usize::from(size % 8)).collect();
    let layout = Layout::ALL[usize::from(*layout) % Layout::ALL.len()].for_shape(&shape);
    let count: usize = layout.stored_shape(&shape).iter().product();
    let mut elements = elements.to_vec();
    elements.resize(count * dtype.size(), 0);
    let placed = layout.place(dtype, &shape, &elements);
    assert!(placed.is_ok(), "{layout} {shape:?}: {placed:?}");
    placed.iter().for_each(look_at);
}
