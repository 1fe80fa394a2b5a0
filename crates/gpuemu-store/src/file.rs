//! The file of a store: opened by one process, never changed before it is known to be ours.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use gpuemu_process::fault;
use redb::{
    Builder, Database, DatabaseError, ReadOnlyDatabase, ReadTransaction, ReadableDatabase, StorageBackend,
    StorageError, TableError, WriteTransaction,
};

use super::error::{Problem, StoreError};
use super::migration;
use super::op_runs;
use super::record::SCHEMA_VERSION;
use super::run_clock::META;
use super::tree::Tree;
use crate::private_file::open_private;

/// Memory for pages. The daemon shares the machine with what it runs, so this is far below redb's own choice.
const CACHE_BYTES: usize = 128 << 20;

const VERSION_KEY: &str = "schema_version";

/// A database and where it lies.
pub(super) struct DatabaseFile {
    database: Database,
    path: PathBuf,
    /// Which file was opened; nothing where it is none.
    identity: Option<(u64, u64)>,
}

impl DatabaseFile {
    /// Opens a store, or makes one, and brings it to the newest form.
    ///
    /// `redb` answers some kinds of damage with a panic: that is an error of the file, not of the program.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        Self::prepared(path, true, || open(path))
    }

    /// The same, on something else than a file. The path is what errors name.
    pub(super) fn on_backend(backend: impl StorageBackend, path: &Path) -> Result<Self, StoreError> {
        Self::prepared(path, false, || Ok(builder().create_with_backend(backend)?))
    }

    fn prepared(
        path: &Path,
        is_file: bool,
        open: impl FnOnce() -> Result<Database, Problem>,
    ) -> Result<Self, StoreError> {
        catch_unwind(AssertUnwindSafe(|| Self::prepared_or_panic(path, is_file, open))).unwrap_or_else(|_| {
            let problem = "is damaged; nothing was changed. Move it away to begin a new one";
            Err(StoreError::Damaged(format!("{} {problem}", path.display())))
        })
    }

    fn prepared_or_panic(
        path: &Path,
        is_file: bool,
        open: impl FnOnce() -> Result<Database, Problem>,
    ) -> Result<Self, StoreError> {
        let database = open().map_err(|problem| problem.at(path))?;
        let identity = if is_file { identity(path) } else { None };
        let file = Self { database, path: path.to_path_buf(), identity };
        let current = u64::from(SCHEMA_VERSION);
        match file.read(|transaction| stored_version(transaction, path))? {
            // One more tree is no other form: what is in the others stays as it is.
            Some(version) if version == current => {
                let has_all = |transaction: &ReadTransaction| {
                    Ok(transaction.list_tables()?.count() > Tree::ALL.len() && op_runs::is_complete(transaction)?)
                };
                if !file.read(has_all)? {
                    file.write(set_up)?;
                }
            }
            Some(version) => file.write(|transaction| {
                migration::migrate(transaction, version)?;
                set_up(transaction)
            })?,
            None => file.write(set_up)?,
        }
        Ok(file)
    }

    /// Reads from one state of the store, whatever is written meanwhile.
    pub(super) fn read<T>(&self, work: impl FnOnce(&ReadTransaction) -> Result<T, Problem>) -> Result<T, StoreError> {
        let injected = || Problem::Store(StoreError::Damaged("injected".to_string()));
        let read = || work(&self.database.begin_read()?);
        fault!("store.read", injected(), read()).map_err(|problem| problem.at(&self.path))
    }

    /// Writes all of it or nothing, and returns when it is on the disk.
    pub(super) fn write<T>(&self, work: impl FnOnce(&WriteTransaction) -> Result<T, Problem>) -> Result<T, StoreError> {
        let written = write(&self.database, work).map_err(|problem| problem.at(&self.path))?;
        // What is written to a file that has no name any more is lost with this process.
        if self.identity.is_some() && identity(&self.path) != self.identity {
            return Err(self.failure("it was removed or replaced while it was in use; start the daemon again"));
        }
        Ok(written)
    }

    /// Writes which pages are in use. Whoever opens the file after a crash need then not read all of it to know, which
    /// takes seconds for each gigabyte, unless something was written since.
    pub(super) fn settle(&self) -> Result<(), StoreError> {
        let settle = || {
            let mut transaction = self.database.begin_write()?;
            transaction.set_quick_repair(true);
            transaction.commit()?;
            Ok(())
        };
        settle().map_err(|problem: Problem| problem.at(&self.path))
    }

    /// An error that is the store's own.
    pub(super) fn failure(&self, problem: &str) -> StoreError {
        StoreError::Database { path: self.path.clone(), problem: problem.to_string() }
    }
}

fn write<T>(database: &Database, work: impl FnOnce(&WriteTransaction) -> Result<T, Problem>) -> Result<T, Problem> {
    let injected = || Problem::Store(StoreError::Damaged("injected".to_string()));
    let transaction = database.begin_write()?;
    let done = fault!("store.insert", injected(), work(&transaction))?;
    fault!("store.commit", injected(), Ok(()))?;
    transaction.commit()?;
    fault!("store.committed", injected(), Ok(()))?;
    Ok(done)
}

/// What tells a file from every other one.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

fn builder() -> Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

fn open(path: &Path) -> Result<Database, Problem> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.len() == 0 => {}
        Ok(_) => look(path)?,
        Err(error) if error.kind() == ErrorKind::NotFound => create(path)?,
        Err(error) => return Err(StorageError::Io(error).into()),
    }
    Ok(builder().create(path)?)
}

/// Refuses what is not ours without writing: redb changes a file by opening it for writing.
fn look(path: &Path) -> Result<(), Problem> {
    match ReadOnlyDatabase::open(path) {
        Ok(database) => stored_version(&database.begin_read()?, path).map(|_| ()),
        // Its last owner was killed. What redb then restores is what was committed.
        Err(DatabaseError::RepairAborted) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Makes a store beside its place and then puts it there: a half-made one would be refused for ever.
fn create(path: &Path) -> Result<(), Problem> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let mut name = path.as_os_str().to_os_string();
    name.push(format!(".new-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed)));
    let fresh = PathBuf::from(name);
    let _ = fs::remove_file(&fresh);
    let made = open_private(File::options().write(true).create_new(true), &fresh);
    made.map_err(StorageError::Io)?;
    let placed = builder().create(&fresh).map_err(Problem::from).and_then(|database| {
        write(&database, set_up)?;
        drop(database);
        place(&fresh, path).map_err(|error| StorageError::Io(error).into())
    });
    let _ = fs::remove_file(&fresh);
    placed
}

fn place(fresh: &Path, path: &Path) -> std::io::Result<()> {
    match fs::hard_link(fresh, path) {
        Ok(()) => {}
        // Another process was faster: its store is the store.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        // Not every file system has links.
        Err(_) => fs::rename(fresh, path)?,
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    // The new name has to survive a power cut as well; where folders cannot be synced, nothing helps.
    let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
    Ok(())
}

/// The version of a store that this gpuemu can use; `None` for a database without anything in it.
fn stored_version(transaction: &ReadTransaction, path: &Path) -> Result<Option<u64>, Problem> {
    let known = u64::from(SCHEMA_VERSION);
    let version = match transaction.open_table(META) {
        Ok(meta) => meta.get(VERSION_KEY)?.map(|version| version.value()),
        Err(TableError::TableDoesNotExist(_)) => None,
        Err(TableError::Storage(error)) => return Err(error.into()),
        Err(_) => return Err(StoreError::NotAStore(path.to_path_buf()).into()),
    };
    match version {
        Some(version) if (1..=known).contains(&version) => Ok(version.into()),
        Some(found) => Err(StoreError::UnknownVersion { found, known }.into()),
        None if transaction.list_tables()?.next().is_none() && transaction.list_multimap_tables()?.next().is_none() => {
            Ok(None)
        }
        None => Err(StoreError::NotAStore(path.to_path_buf()).into()),
    }
}

/// Gives a store its version and trees.
fn set_up(transaction: &WriteTransaction) -> Result<(), Problem> {
    transaction.open_table(META)?.insert(VERSION_KEY, u64::from(SCHEMA_VERSION))?;
    for tree in Tree::ALL {
        tree.write(transaction)?;
    }
    op_runs::rebuild(transaction)
}
