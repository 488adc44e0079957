//! The directories of this user's server: from the command line, the environment (`PTYD_*`), or XDG.

use std::io;
use std::path::PathBuf;

use clap::Args;
use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;
use ptyd_core::unix_socket::SOCKET_FILE;

/// The options that every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Server")]
pub struct PathOptions {
    /// The directory of sessions, token and logs [default: $XDG_STATE_HOME/ptyd, else ~/.local/state/ptyd]
    #[arg(long, global = true, env = "PTYD_STATE_DIR", value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// The server's Unix socket; it takes precedence over PTYD_URL [default: ptyd.sock in the state directory]
    #[arg(long, global = true, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Use the server at this URL, with the token of PTYD_TOKEN or of `ptyd login` [default: the one on this machine]
    #[arg(long, global = true, env = "PTYD_URL", value_name = "URL")]
    pub url: Option<String>,
    /// The configuration file [default: $XDG_CONFIG_HOME/ptyd/config.toml, else ~/.config/ptyd/config.toml]
    #[arg(long, global = true, env = "PTYD_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The directory of the socket, unless --socket names it
    #[arg(long, global = true, hide = true, env = "PTYD_RUNTIME_DIR", value_name = "DIR")]
    pub runtime_dir: Option<PathBuf>,
}

/// The paths of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The directory for sessions, token and log.
    pub state_dir: PathBuf,
    /// Its Unix socket.
    pub socket: PathBuf,
    /// The configuration file, if it was given explicitly.
    pub config: Option<PathBuf>,
    /// The URL of a server elsewhere.
    pub url: Option<String>,
}

impl PathOptions {
    /// The configuration file, if there is a home directory for one.
    pub fn config_file(&self) -> Option<PathBuf> {
        let named = self.config.clone().filter(|file| !file.as_os_str().is_empty());
        named.or_else(|| Some(Xdg::new().ok()?.config_dir().join("ptyd/config.toml")))
    }
}

impl Paths {
    /// Resolves these options in the present environment.
    pub fn resolve(options: &PathOptions) -> io::Result<Self> {
        let xdg = Xdg::new().map_err(|_| io::Error::other("there is no home directory: set HOME or PTYD_STATE_DIR"));
        Self::choose(options, xdg)
    }

    fn choose(options: &PathOptions, xdg: io::Result<Xdg>) -> io::Result<Self> {
        let chosen = options.state_dir.clone().filter(|d| !d.as_os_str().is_empty());
        let state_dir = match chosen {
            Some(dir) => dir,
            None => {
                let xdg = xdg?;
                xdg.state_dir().unwrap_or_else(|| xdg.home_dir().join(".local/state")).join("ptyd")
            }
        };
        // Not in XDG_RUNTIME_DIR: many clients start `ptyd mcp` without it, and one state directory has one server.
        let runtime_dir = options.runtime_dir.clone().filter(|d| !d.as_os_str().is_empty());
        let runtime_dir = runtime_dir.unwrap_or_else(|| state_dir.clone());
        let socket = options.socket.clone().unwrap_or_else(|| runtime_dir.join(SOCKET_FILE));
        let named = options.config.clone().filter(|file| !file.as_os_str().is_empty());
        let config = named.map(std::path::absolute).transpose()?;
        let url = options.url.clone().filter(|url| !url.is_empty() && options.socket.is_none());
        Ok(Self { state_dir: std::path::absolute(state_dir)?, socket: std::path::absolute(socket)?, config, url })
    }

    /// The log of a server that was started on demand.
    pub fn log(&self) -> PathBuf {
        self.state_dir.join("server.log")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none() -> io::Result<Xdg> {
        Err(io::Error::other("no home"))
    }

    #[test]
    fn each_state_directory_has_its_own_socket() {
        let options = PathOptions { state_dir: Some("/a".into()), ..PathOptions::default() };
        let expected = Paths { state_dir: "/a".into(), socket: "/a/ptyd.sock".into(), config: None, url: None };
        assert_eq!(Paths::choose(&options, none()).expect("chosen"), expected);
        assert_eq!(Paths::choose(&options, Xdg::new().map_err(io::Error::other)).expect("chosen"), expected);
    }

    #[test]
    fn a_named_socket_precedes_a_runtime_directory() {
        let mut options =
            PathOptions { state_dir: Some("/a".into()), runtime_dir: Some("/r".into()), ..PathOptions::default() };
        assert_eq!(Paths::choose(&options, none()).expect("chosen").socket, PathBuf::from("/r/ptyd.sock"));
        options.socket = Some("/s".into());
        assert_eq!(Paths::choose(&options, none()).expect("chosen").socket, PathBuf::from("/s"));
    }

    #[test]
    fn without_a_home_a_state_directory_must_be_named() {
        assert!(Paths::choose(&PathOptions::default(), none()).is_err());
    }
}
