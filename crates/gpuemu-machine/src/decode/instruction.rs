//! The compact form of an instruction: what it does, and the slots of its registers.

use crate::memory::Space;
use crate::numerics::atomic::AtomicFunction;
use crate::registers::{Pure, RegisterWidth, Slot};
use crate::tensor_core::{self, PreparedProduct, WmmaTransfer};

/// The predicate that an instruction waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    pub slot: Slot,
    /// Whether lanes take part where it is false.
    pub negated: bool,
}

#[derive(Debug, Clone)]
pub struct Decoded {
    /// Lanes that take part.
    pub guard: Option<Guard>,
    pub action: Action,
}

/// What an instruction does.
#[derive(Debug, Clone)]
pub enum Action {
    Pure(Pure),
    Branch(u32),
    /// Goes on where a register says.
    BranchTable(Slot, Box<[u32]>),
    Exit,
    /// Ends a function; the thread, in an entry.
    Return,
    Trap,
    /// Nothing that can be seen: a hint.
    Nothing,
    /// A function of the module.
    Call(Box<Call>),
    /// A function of the system.
    System(Box<SystemCall>),
    Load(Box<Transfer>),
    Store(Box<Transfer>),
    /// Memory read and written in one step.
    Atomic(Box<Atomic>),
    /// An asynchronous copy from global to shared memory.
    CopyAsync(Box<CopyAsync>),
    /// Ends the group of asynchronous copies.
    CommitGroup,
    /// Waits until at most so many groups are in flight; all are waited for, whether committed or not, if none.
    WaitGroup(Option<u32>),
    /// A barrier of the block.
    Barrier(Box<Barrier>),
    /// A barrier of lanes of a warp.
    WarpBarrier(Slot),
    Fence(Fence),
    Shuffle(Box<Shuffle>),
    Vote(Box<Vote>),
    /// Lanes with equal values.
    Match(Box<Match>),
    /// A reduction over lanes.
    Reduce(Box<Reduce>),
    /// The lanes that are active, as a mask.
    ActiveMask(Slot),
    /// One lane of those in the mask is elected.
    Elect(Slot, Slot, Slot),
    /// A product of matrices.
    Product(Box<Product>),
    /// Matrices from shared memory.
    MatrixLoad(Box<MatrixTransfer>),
    /// Matrices to shared memory.
    MatrixStore(Box<MatrixTransfer>),
    /// A fragment from memory.
    FragmentLoad(Box<FragmentTransfer>),
    /// A fragment to memory.
    FragmentStore(Box<FragmentTransfer>),
    /// A counter of time.
    Clock(Slot, RegisterWidth),
    /// Whether addresses lie in a space.
    IsSpace(Box<IsSpace>),
}

/// Where an access goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    pub base: Option<(Slot, RegisterWidth)>,
    /// What is added to it.
    pub offset: i64,
    pub space: Space,
}

/// How an access takes part in the ordering of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ordering {
    /// Volatile, relaxed or stronger: two such accesses are no race.
    pub strong: bool,
    /// What the thread saw before is seen by whoever reads this.
    pub release: bool,
    /// What was released here is seen afterwards.
    pub acquire: bool,
    /// Whether it only holds within a block.
    pub block_only: bool,
}

/// A load or a store.
#[derive(Debug, Clone)]
pub struct Transfer {
    pub address: Address,
    pub element_bytes: u8,
    /// Whether an element is extended by its sign.
    pub signed: bool,
    /// The registers of the elements, in order; none for one that is thrown away.
    pub registers: Vec<Option<(Slot, RegisterWidth)>>,
    pub ordering: Ordering,
}

impl Transfer {
    /// Bytes of a lane.
    pub fn bytes(&self) -> usize {
        usize::from(self.element_bytes) * self.registers.len()
    }
}

#[derive(Debug, Clone)]
pub struct Atomic {
    pub address: Address,
    pub element_bytes: u8,
    /// What comes of the old value, the operand, and the second one; in generic space, for shared memory second.
    pub functions: [AtomicFunction; 2],
    /// The registers that the old values go to, if any.
    pub results: Vec<Option<(Slot, RegisterWidth)>>,
    pub operands: Vec<(Slot, RegisterWidth)>,
    /// What is written where the operand was found.
    pub swap: Option<(Slot, RegisterWidth)>,
    pub ordering: Ordering,
}

#[derive(Debug, Clone)]
pub struct CopyAsync {
    /// Where to, in shared memory.
    pub target: Address,
    pub source: Address,
    /// Bytes of a lane.
    pub bytes: u8,
    /// How many of them are read; the rest is zero.
    pub read_bytes: Option<Slot>,
    /// Lanes where nothing is read, all is zero.
    pub ignore_source: Option<Slot>,
}

/// What happens at a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarrierAction {
    Synchronise,
    Arrive,
    /// Waits, and every thread learns how many threads' predicates are true, whether all, or any.
    Count,
    All,
    Any,
}

/// A barrier of a block.
#[derive(Debug, Clone)]
pub struct Barrier {
    /// Which of the sixteen.
    pub number: Slot,
    /// How many threads it waits for; all of the block if none.
    pub threads: Option<Slot>,
    pub action: BarrierAction,
    /// Whether all lanes of a warp must come at once.
    pub aligned: bool,
    /// The predicate of a reduction, and its result.
    pub reduction: Option<(Slot, Slot)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    /// Whether it only holds within a block.
    pub block_only: bool,
}

/// Which lane a shuffle reads from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are their own names")]
pub enum ShuffleMode {
    Up,
    Down,
    Butterfly,
    Index,
}

#[derive(Debug, Clone)]
pub struct Shuffle {
    pub mode: ShuffleMode,
    pub result: Slot,
    /// Whether the lane was in range.
    pub in_range: Option<Slot>,
    pub source: Slot,
    pub lane: Slot,
    pub bounds: Slot,
    /// Lanes that take part; all that are active in the old form.
    pub members: Option<Slot>,
}

/// What a vote asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are their own names")]
pub enum VoteMode {
    All,
    Any,
    Uniform,
    Ballot,
}

#[derive(Debug, Clone)]
pub struct Vote {
    pub mode: VoteMode,
    /// Result: a mask for a ballot, a predicate otherwise.
    pub result: Slot,
    /// The predicate of each lane.
    pub source: Slot,
    /// Lanes that take part; all that are active in the old form.
    pub members: Option<Slot>,
}

/// Lanes with equal values.
#[derive(Debug, Clone)]
pub struct Match {
    /// Whether all must be equal; otherwise every lane learns who is equal to it.
    pub all: bool,
    /// Result: a mask.
    pub result: Slot,
    /// Whether all are equal.
    pub predicate: Option<Slot>,
    pub source: (Slot, RegisterWidth),
    /// Lanes that take part.
    pub members: Slot,
}

/// A reduction over lanes.
#[derive(Debug, Clone)]
pub struct Reduce {
    /// How two values become one.
    pub combine: fn(u32, u32) -> u32,
    pub result: Slot,
    pub source: Slot,
    /// Lanes that take part.
    pub members: Slot,
}

/// A product of matrices.
#[derive(Debug, Clone)]
pub struct Product {
    pub product: PreparedProduct,
    /// D, A, B and C.
    pub slots: Vec<Slot>,
}

/// Rows of matrices between shared memory and registers.
#[derive(Debug, Clone)]
pub struct MatrixTransfer {
    /// How rows are spread over lanes.
    pub matrix: tensor_core::MatrixTransfer,
    /// The row of each lane.
    pub address: Address,
    pub registers: Vec<Slot>,
}

/// A fragment between memory and registers.
#[derive(Debug, Clone)]
pub struct FragmentTransfer {
    /// Which element lies where.
    pub fragment: WmmaTransfer,
    pub address: Address,
    /// Elements from a row, or a column, to the next; as the layout says if none.
    pub stride: Option<Slot>,
    pub registers: Vec<(Slot, RegisterWidth)>,
}

/// Whether addresses lie in a space.
#[derive(Debug, Clone)]
pub struct IsSpace {
    pub result: Slot,
    pub address: (Slot, RegisterWidth),
    pub space: Space,
}

/// Bytes of a thread's own memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    pub offset: u32,
    pub bytes: u32,
}

/// A call of a function of the module.
#[derive(Debug, Clone)]
pub struct Call {
    pub target: u32,
    /// Bytes that are copied before: from the caller's to the callee's.
    pub arguments: Vec<(Frame, Frame)>,
    /// Bytes that are copied afterwards: from the callee's to the caller's.
    pub results: Vec<(Frame, Frame)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemFunction {
    /// `vprintf(format, arguments)`.
    Print,
    /// `__assertfail(message, file, line, function, size of a character)`.
    AssertFail,
}

/// A call of a function of the system.
#[derive(Debug, Clone)]
pub struct SystemCall {
    pub function: SystemFunction,
    pub arguments: Vec<Frame>,
    pub result: Option<Frame>,
}
