//! What a store refuses: files that are not its own stay as they are, and errors name the file.

use std::path::Path;
use std::process::{Command, Stdio};

use gpuemu_store::{SCHEMA_VERSION, Store, StoreError};
use redb::{Database, TableDefinition};
use tempfile::TempDir;

use crate::{Home, everything, record, with};

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

/// Opens a file that must be refused, and checks that not a byte of it and nothing beside it changed.
fn refused(path: &Path) -> StoreError {
    let before = std::fs::read(path).unwrap();
    let error = Store::open(path).err().unwrap();
    assert_eq!(Store::open(path).err(), Some(error.clone()));
    assert!(std::fs::read(path).unwrap() == before, "the file was changed");
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    error
}

#[test]
fn a_store_has_one_owner() {
    let home = Home::new();
    let path = home.folder.path().join("gpuemu.redb");
    assert_eq!(Store::open(&path).err(), Some(StoreError::InUse(path)));
}

#[test]
fn a_store_of_an_unknown_version_is_refused_and_left_as_it_is() {
    let home = Home::new();
    home.store.append(&[record("p", 1, "x", 0, 0)], &[]).unwrap();
    let Home { store, folder } = home;
    drop(store);
    let path = folder.path().join("gpuemu.redb");
    for version in [99, 0] {
        let database = Database::create(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(META).unwrap().insert("schema_version", version).unwrap();
        transaction.commit().unwrap();
        drop(database);
        let known = u64::from(SCHEMA_VERSION);
        assert_eq!(refused(&path), StoreError::UnknownVersion { found: version, known });
    }
}

#[test]
fn a_file_that_is_no_store_is_an_error_and_stays() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("gpuemu.redb");
    let long = "somebody's notes\n".repeat(100_000);
    for content in ["this is not a database, but somebody's notes", "x", &long, &"\0".repeat(5000)] {
        std::fs::write(&path, content).unwrap();
        let error = refused(&path);
        assert_eq!(error, StoreError::NotAStore(path.clone()));
        let message = error.to_string();
        assert!(message.starts_with(&format!("{} is not a gpuemu store", path.display())), "{message}");
    }
}

#[test]
fn a_database_of_another_program_is_an_error_and_stays() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("gpuemu.redb");
    let other: TableDefinition<'_, u64, u64> = TableDefinition::new("other");
    let same_name: TableDefinition<'_, u64, u64> = TableDefinition::new("meta");
    for definition in [other, same_name] {
        let database = Database::create(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(definition).unwrap().insert(1, 2).unwrap();
        transaction.commit().unwrap();
        drop(database);
        assert_eq!(refused(&path), StoreError::NotAStore(path.clone()));
    }
}

#[test]
fn an_empty_file_or_an_empty_database_becomes_a_store() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("gpuemu.redb");
    std::fs::write(&path, "").unwrap();
    Store::open(&path).unwrap().append(&[record("p", 1, "x", 0, 0)], &[]).unwrap();
    std::fs::remove_file(&path).unwrap();
    drop(Database::create(&path).unwrap());
    Store::open(&path).unwrap().append(&[record("p", 1, "x", 0, 0)], &[]).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_folder_that_is_missing_or_not_writable_is_named() {
    let folder = TempDir::new().unwrap();
    let is_named = |path: &Path| {
        let error = Store::open(path).err().unwrap();
        let message = error.to_string();
        assert!(matches!(error, StoreError::Database { .. }), "{message}");
        assert!(message.contains(&path.display().to_string()), "{message}");
        message
    };
    assert!(is_named(&folder.path().join("missing/gpuemu.redb")).contains("make its folder first"));
    std::fs::write(folder.path().join("file"), "x").unwrap();
    assert!(is_named(&folder.path().join("file/gpuemu.redb")).contains("make its folder first"));
    is_named(folder.path());

    let read_only = folder.path().join("read-only");
    std::fs::create_dir(&read_only).unwrap();
    let mut permissions = std::fs::metadata(&read_only).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&read_only, permissions).unwrap();
    // For some users nothing is read-only.
    if std::fs::write(read_only.join("probe"), "").is_err() {
        assert!(is_named(&read_only.join("gpuemu.redb")).contains("writable"));
    }
}

/// The child of the test below: writes until the disk has no room, and says what was acknowledged.
fn write_until_full(path: &Path) {
    let store = Store::open(path).unwrap();
    for index in 0..10_000 {
        let large = with(record("p", 1, "x", index, 0), |result| result.case.schema = "x".repeat(10_000));
        match store.append(&[large], &[]) {
            Ok(()) => println!("acknowledged {index}"),
            Err(error) => {
                println!("refused {error}");
                println!("again {}", store.append(&[record("p", 1, "x", index, 0)], &[]).unwrap_err());
                return;
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn a_disk_without_room_is_an_error_that_loses_nothing() {
    if let Some(path) = std::env::var_os("GPUEMU_STORE_FULL") {
        return write_until_full(Path::new(&path));
    }
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("gpuemu.redb");
    // A limit on the size of files, in blocks of 512 or 1024 bytes, stands in for the end of the disk.
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8000; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["refusal::a_disk_without_room_is_an_error_that_loses_nothing", "--exact", "--nocapture"])
        .env("GPUEMU_STORE_FULL", &path)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let output = String::from_utf8(output.stdout).unwrap();
    let lines = |begin: &str| output.lines().filter_map(|line| line.strip_prefix(begin)).collect::<Vec<&str>>();
    let (acknowledged, refused, again) = (lines("acknowledged "), lines("refused "), lines("again "));
    assert!(acknowledged.len() > 10, "{output}");
    assert_eq!((refused.len(), again.len()), (1, 1), "{output}");
    assert!(refused[0].contains("gpuemu.redb") && refused[0].contains("make room"), "{}", refused[0]);
    assert!(again[0].contains("gpuemu.redb"), "{}", again[0]);
    let store = Store::open(&path).unwrap();
    assert!(store.results("p", &everything()).unwrap().len() >= acknowledged.len());
}

#[test]
fn nothing_is_acknowledged_by_a_store_that_is_no_longer_in_its_place() {
    let home = Home::new();
    let record = record("/p", 1, "softmax", 0, 7);
    home.store.append(std::slice::from_ref(&record), &[]).unwrap();
    std::fs::remove_file(home.folder.path().join("gpuemu.redb")).unwrap();
    let refused = home.store.append(&[record], &[]).unwrap_err().to_string();
    assert!(refused.contains("was removed or replaced while it was in use"), "{refused}");
}
