//! `gpuemu man`: the manual pages, made from the definitions of the commands themselves.

use std::path::PathBuf;

use clap::CommandFactory;

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::write_text;

/// Arguments of `gpuemu man`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Write a page for gpuemu and for each of its commands into this folder; without it the first one is printed.
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<u8, ExpectedError> {
    let definition = crate::Arguments::command();
    match &arguments.output {
        Some(folder) => {
            let failed = |error| ExpectedError::plain(format!("{} cannot be written: {error}", folder.display()));
            std::fs::create_dir_all(folder).map_err(failed)?;
            clap_mangen::generate_to(definition, folder).map_err(failed)?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(definition).render(&mut page)?;
            write_text(&String::from_utf8_lossy(&page))?;
        }
    }
    Ok(exit_code::PASSED)
}
