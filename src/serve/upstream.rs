//! Reaching a real provider: the client, its trust, and addresses.
//!
//! Certificates are checked against the public authorities that are built in, and against those that are named beside
//! them, such as the one of a company's proxy.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// Somebody whose certificates are trusted.
pub type Authority = CertificateDer<'static>;

/// A client for plain and encrypted connections.
pub(crate) type HttpClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// The authorities of a PEM file.
///
/// # Errors
/// When the text holds no certificate, or one that cannot be read.
pub fn authorities(pem: &str) -> Result<Vec<Authority>, String> {
    let found: Result<Vec<Authority>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match found {
        Ok(found) if found.is_empty() => Err("holds no certificate in PEM form".to_owned()),
        Ok(found) => Ok(found),
        Err(error) => Err(format!("not a PEM file: {error}")),
    }
}

/// A client that trusts the public authorities and these.
///
/// # Errors
/// When a certificate cannot be an authority.
pub(crate) fn client(also: &[Authority]) -> io::Result<HttpClient> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for authority in also {
        roots.add(authority.clone()).map_err(io::Error::other)?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector =
        HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().build();
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

/// Scheme, host and port and path, without user, password and query.
pub(crate) fn without_credentials(uri: &Uri) -> String {
    let host = uri.host().unwrap_or_default();
    let port = uri.port().map_or_else(String::new, |port| format!(":{port}"));
    format!("{}://{host}{port}{}", uri.scheme_str().unwrap_or("http"), uri.path().trim_end_matches('/'))
}

/// The upstream's address with the path that was asked for. A base that ends in `/v1` is not doubled.
pub(crate) fn target(upstream: &Uri, path: &str) -> String {
    let base = upstream.path().trim_end_matches('/');
    let path = if base.ends_with("/v1") { path.strip_prefix("/v1").unwrap_or(path) } else { path };
    let authority = upstream.authority().map_or("", |authority| authority.as_str());
    format!("{}://{authority}{base}{path}", upstream.scheme_str().unwrap_or("http"))
}

/// Why, without addresses that may hold credentials.
pub(crate) fn reason(error: &hyper_util::client::legacy::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_is_named_without_its_credentials_and_reached_under_its_base() {
        let uri: Uri = "https://user:secret@api.example:8443/v1?key=secret".parse().unwrap();
        assert_eq!(without_credentials(&uri), "https://api.example:8443/v1");
        let base: Uri = "https://api.example/v1".parse().unwrap();
        assert_eq!(target(&base, "/v1/messages?beta=true"), "https://api.example/v1/messages?beta=true");
        let base: Uri = "http://127.0.0.1:80".parse().unwrap();
        assert_eq!(target(&base, "/v1/messages"), "http://127.0.0.1:80/v1/messages");
    }

    #[test]
    fn a_file_without_a_certificate_is_no_authority() {
        assert!(authorities("").unwrap_err().contains("no certificate"));
        let broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
        assert!(authorities(broken).unwrap_err().contains("not a PEM file"));
    }
}
