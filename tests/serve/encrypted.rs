//! Recording from a provider behind TLS: a throw-away authority, a certificate for the loopback address, and a tunnel
//! that decrypts in front of the mock provider.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use tokio::net::{TcpListener, TcpStream};

use crate::serve::agents::{Agent, Protocol};
use crate::serve::support::{Mock, TWO_TURNS};
use crate::support::refused;

/// An address where TLS is spoken, and the authority that signed for it, in PEM form.
fn behind_tls(upstream: &str) -> (SocketAddr, String) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = certificate.signed_by(&key, &authority).unwrap();
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let (upstream, (tell, address)) = (upstream.to_owned(), std::sync::mpsc::channel());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, upstream) = (acceptor.clone(), upstream.clone());
                tokio::spawn(async move {
                    // Whoever does not trust the certificate hangs up.
                    let Ok(mut client) = acceptor.accept(stream).await else { return };
                    let Ok(mut server) = TcpStream::connect(upstream).await else { return };
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
    });
    (address.recv().unwrap(), authority.pem())
}

#[test]
fn a_cassette_is_recorded_over_tls_from_a_provider_whose_authority_is_named() {
    let upstream = Mock::start(TWO_TURNS, &[]);
    let (address, authority) = behind_tls(&upstream.address);
    let url = format!("https://{address}");
    let arguments = ["record", "--upstream", &url, "--upstream-ca", "ca.pem", "--cassette", "cassette.jsonl"];
    let proxy = Mock::command("ca.pem", &authority, &arguments);
    for stream in [false, true] {
        let mut agent = Agent::new(Protocol::Messages);
        agent.stream = stream;
        agent.user("What is in the folder?");
        let answer = agent.ask(&proxy);
        assert_eq!((answer.status, answer.whole), (200, true), "{}", answer.body);
    }
    let end = proxy.stop();
    assert_eq!(end.code, 0, "{}", end.stdout);
    assert!(end.stdout.contains("2 exchanges"), "{}", end.stdout);
    assert!(end.file("cassette.jsonl").contains(&format!("\"upstream\":\"{url}\"")));
    upstream.stop();
}

#[test]
fn a_certificate_of_nobody_known_is_not_believed() {
    let upstream = Mock::start(TWO_TURNS, &[]);
    let (address, _) = behind_tls(&upstream.address);
    let url = format!("https://{address}");
    let proxy = Mock::command("empty", "", &["record", "--upstream", &url]);
    let mut agent = Agent::new(Protocol::Chat);
    agent.user("What is in the folder?");
    let answer = agent.ask(&proxy);
    assert_eq!(answer.status, 502);
    assert!(answer.body.contains("UnknownIssuer"), "{}", answer.body);
    assert_eq!(proxy.stop().code, 1);
    assert!(upstream.stop().stdout.contains("0 requests"), "nothing reached it");
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let error = refused(&["record", "--upstream", &url, "--upstream-ca", here]);
    assert!(error.contains("holds no certificate in PEM form"), "{error}");
}
