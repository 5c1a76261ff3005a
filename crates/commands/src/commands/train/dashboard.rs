//! `heedful train --dashboard`: the server's page about a run while it trains.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result};
use heedful::recipe::Recipe;
use heedful_server::{Server, ServerOptions};

/// Serves the page of the recipe's run on this machine only, and prints its address.
pub(super) fn open(recipe: &Recipe, port: u16) -> Result<Server> {
    let folder = recipe.output.out.clone().context("the run has no folder: add --out RUN")?;
    let name =
        folder.file_name().map_or_else(|| "run".to_owned(), |name| name.to_string_lossy().into_owned());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let options = ServerOptions { address, run: Some((name, folder)), ..ServerOptions::default() };
    let server =
        Server::start(options).context("the dashboard cannot start; --dashboard=0 takes any free port")?;
    eprintln!("watch this run at http://{}/#runs", server.address());
    Ok(server)
}
