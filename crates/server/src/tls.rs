//! Certificates and keys.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

/// Where a certificate chain and its key are, as PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read a certificate from {}: {reason}", path.display())]
    Certificate { path: PathBuf, reason: String },
    #[error("cannot read a private key from {}: {reason}", path.display())]
    Key { path: PathBuf, reason: String },
    #[error("the certificate and the key do not work together: {0}")]
    Pair(rustls::Error),
}

pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let (chain, key) = (chain(&files.certificate)?, key(&files.key)?);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Pair)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(TlsError::Pair)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bad = |reason: String| TlsError::Certificate { path: path.into(), reason };
    let found: Result<Vec<_>, _> = match CertificateDer::pem_file_iter(path) {
        Ok(all) => all.collect(),
        Err(e) => return Err(bad(e.to_string())),
    };
    match found {
        Ok(chain) if chain.is_empty() => Err(bad("there is none in it".into())),
        Ok(chain) => Ok(chain),
        Err(e) => Err(bad(e.to_string())),
    }
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path)
        .map_err(|e| TlsError::Key { path: path.into(), reason: e.to_string() })
}
