//! TLS of the TCP listener: the certificate and its key are read again when their files change.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use ptyd_core::config::TlsFiles;
use ptyd_core::serve_error::ServeError;

/// How often the files are looked at, at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The TLS of a listener.
#[derive(Debug)]
pub(super) struct Tls {
    files: TlsFiles,
    loaded: Mutex<Loaded>,
}

/// The files' last readable content.
#[derive(Debug)]
struct Loaded {
    config: Arc<ServerConfig>,
    /// The stamps of the files that were last read, also where they could not be used.
    stamps: [Option<Stamp>; 2],
    looked_at: Instant,
}

/// The facts about a file that change with its content.
type Stamp = (SystemTime, u64);

impl Tls {
    /// Reads the files for the first time.
    pub(super) fn new(files: TlsFiles) -> Result<Self, ServeError> {
        let stamps = stamps(&files);
        let config = read(&files).map_err(|why| ServeError::Tls {
            certificate: files.certificate.clone(),
            key: files.key.clone(),
            why,
        })?;
        Ok(Self { files, loaded: Mutex::new(Loaded { config, stamps, looked_at: Instant::now() }) })
    }

    /// The handshake of an accepted connection, with the newest certificate that can be used.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        TlsAcceptor::from(self.config(Instant::now())).accept(stream).await
    }

    fn config(&self, now: Instant) -> Arc<ServerConfig> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(loaded.looked_at) >= LOOK_EVERY {
            loaded.looked_at = now;
            let stamps = stamps(&self.files);
            if stamps != loaded.stamps {
                // A pair of which only one file was replaced so far is read again when the other one changes.
                loaded.stamps = stamps;
                let certificate = self.files.certificate.display();
                match read(&self.files) {
                    Ok(config) => {
                        tracing::info!(%certificate, "the certificate has changed and is used from now on");
                        loaded.config = config;
                    }
                    Err(why) => tracing::warn!(%certificate, why, "the certificate has changed and cannot be used"),
                }
            }
        }
        Arc::clone(&loaded.config)
    }
}

fn stamps(files: &TlsFiles) -> [Option<Stamp>; 2] {
    let stamp = |path: &Path| {
        let there = fs::metadata(path).ok()?;
        Some((there.modified().ok()?, there.len()))
    };
    [stamp(&files.certificate), stamp(&files.key)]
}

fn read(files: &TlsFiles) -> Result<Arc<ServerConfig>, String> {
    let wrong = |path: &Path, why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    for path in [&files.certificate, &files.key] {
        // A pipe would hold the whole server until somebody writes to it.
        if fs::metadata(path).is_ok_and(|file| !file.is_file()) {
            return Err(wrong(path, &"it is not a regular file"));
        }
    }
    let certificates = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| wrong(&files.certificate, &e))?;
    if certificates.is_empty() {
        return Err(wrong(&files.certificate, &"it has no certificate in PEM"));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|e| wrong(&files.key, &e))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(|e| e.to_string())?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
