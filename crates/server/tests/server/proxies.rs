//! Behind reverse proxies: the address of the client, and the URLs of the server.

use std::fs;

use heedful_server::{Limits, Server, ServerOptions};
use serde_json::json;

use crate::client::{Reply, connect, get, send};
use crate::models::{options, serving, translator};

/// A server behind a proxy on this machine, with one key.
fn behind_a_proxy(more: impl FnOnce(ServerOptions) -> ServerOptions) -> (Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let (keys, model) = (folder.path().join("keys.json"), folder.path().join("zh-en"));
    fs::write(&keys, r#"[{"key": "guest"}]"#).expect("room");
    translator(&model, 4);
    let models = vec![heedful_server::ModelSpec::named("zh-en", &model)];
    let trusted_proxies = vec!["127.0.0.0/8".parse().expect("a network")];
    let options = ServerOptions { keys: Some(keys), trusted_proxies, ..options(models) };
    (Server::start(more(options)).expect("a server"), folder)
}

fn models(server: &Server, client: &str, key: &str) -> Reply {
    let head = format!(
        "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Forwarded-For: {client}\r\n\
         Authorization: Bearer {key}\r\n\r\n"
    );
    send(server.address(), head.as_bytes())
}

#[test]
fn guessing_keys_through_a_trusted_proxy_locks_out_only_that_client() {
    let (server, _folder) = behind_a_proxy(|options| options);
    for number in 0..20 {
        // Entries that the client forges have no effect.
        assert_eq!(models(&server, &format!("10.0.0.{number}, 1.2.3.4"), "guess").status, 403);
    }
    assert_eq!(models(&server, "1.2.3.4", "guess").status, 429);
    assert_eq!(models(&server, "5.6.7.8", "guess").status, 403);
    assert_eq!(
        (models(&server, "1.2.3.4", "guest").status, models(&server, "5.6.7.8", "guest").status),
        (200, 200)
    );
}

#[test]
fn a_trusted_proxy_may_have_many_connections() {
    let limits = || Limits { connections_per_address: 3, ..Limits::default() };
    let (server, _folder) = behind_a_proxy(|options| ServerOptions { limits: limits(), ..options });
    let _open: Vec<_> = (0..10).map(|_| connect(server.address())).collect();
    assert_eq!(get(&server, "/health").status, 200);
}

/// The base URL of a translated file, for a request with additional headers.
fn translated_file(server: &Server, lines: &str) -> String {
    let part = |name: &str, value: &str| {
        format!("--X\r\nContent-Disposition: form-data; name={name}\r\n\r\n{value}\r\n")
    };
    let fields = part("\"source\"", "zh") + &part("\"target\"", "en") + &part("\"api_key\"", "guest");
    let body = fields + &part("\"file\"; filename=\"a.txt\"", "一辆") + "--X--\r\n";
    let length = body.len();
    let request = format!(
        "POST /translate_file HTTP/1.1\r\nHost: localhost\r\n{lines}Content-Type: multipart/form-data; boundary=X\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    let reply = send(server.address(), request.as_bytes());
    let address =
        reply.json()["translatedFileUrl"].as_str().unwrap_or_else(|| panic!("{}", reply.body)).to_owned();
    let (base, id) = address.rsplit_once("/download_file/").expect("an address of a file");
    assert_eq!(get(server, &format!("/download_file/{id}")).status, 200);
    base.to_owned()
}

#[test]
fn urls_of_translated_files_are_reachable_by_clients() {
    let forwarded = "X-Forwarded-Proto: https\r\nX-Forwarded-Host: translate.example.org\r\n";
    let (untrusting, _folder) = serving();
    assert_eq!(
        translated_file(&untrusting, forwarded),
        "http://localhost",
        "any client can forge these headers"
    );
    let (behind, _folder) = behind_a_proxy(|options| options);
    assert_eq!(translated_file(&behind, forwarded), "https://translate.example.org");
    assert_eq!(translated_file(&behind, ""), "http://localhost");
    let public_url = Some("https://example.org/mt/".to_owned());
    let (with_url, _folder) = behind_a_proxy(|options| ServerOptions { public_url, ..options });
    assert_eq!(translated_file(&with_url, forwarded), "https://example.org/mt");
    let reply =
        send(with_url.address(), b"GET /health HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n");
    assert_eq!((reply.status, reply.json()), (200, json!({"status": "ok"})), "it answers to its public name");
}

#[test]
fn invalid_addresses_are_refused() {
    let public_url = Some("translate.example.org".to_owned());
    let error = Server::start(ServerOptions { public_url, ..options(Vec::new()) }).err().expect("no address");
    assert!(
        error.to_string().contains("--public-url \"translate.example.org\" is not an address"),
        "{error}"
    );
    assert!("10.0.0.0/40".parse::<heedful_server::Network>().is_err());
}
