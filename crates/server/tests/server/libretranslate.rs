//! The request and response formats of LibreTranslate's clients.

use std::fs;

use heedful::tasks::translate::Translator;
use heedful_server::{Server, ServerOptions};
use serde_json::json;

use crate::client::{get, post, request, send};
use crate::models::{options, search, serving};

#[test]
fn a_text_is_translated_as_by_the_library() {
    let (server, folder) = serving();
    let translator = Translator::open(folder.path().join("zh-en")).expect("a model");
    let alone =
        |text: &str| translator.translate([text], &search()).expect("a good text")[0].best().to_owned();
    let reply = post(&server, "/translate", &json!({"q": "一辆汽车", "source": "zh", "target": "en"}));
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(reply.json(), json!({"translatedText": alone("一辆汽车")}));

    // Sentences are translated one by one; the text between them is kept.
    let text = "  一辆汽车。\r\n\r\n 一套房子！\n";
    let reply = post(&server, "/translate", &json!({"q": [text, "", " "], "source": "zh", "target": "en"}));
    let expected = format!("  {}\r\n\r\n {}\n", alone("一辆汽车。"), alone("一套房子！"));
    assert_eq!(reply.json(), json!({"translatedText": [expected, "", " "]}));
    server.stop();
}

#[test]
fn forms_are_accepted_like_json() {
    let (server, _folder) = serving();
    let body = "q=%E4%B8%80%E8%BE%86%E6%B1%BD%E8%BD%A6&source=zh&target=en&alternatives=1&format=text";
    let bytes = request("POST", "/translate", "application/x-www-form-urlencoded", body);
    let form = send(server.address(), bytes.as_bytes());
    let wanted = json!({"q": "一辆汽车", "source": "zh", "target": "en", "alternatives": 1});
    assert_eq!((form.status, form.json()), (200, post(&server, "/translate", &wanted).json()));
}

#[test]
fn alternatives_and_detected_languages_have_the_shape_of_the_text() {
    let (server, _folder) = serving();
    let body = json!({"q": "这是一辆汽车", "source": "auto", "target": "en", "alternatives": 2});
    let one = post(&server, "/translate", &body).json();
    assert!(one["translatedText"].is_string());
    assert_eq!(one["alternatives"].as_array().map(Vec::len), Some(2));
    assert_eq!(one["detectedLanguage"]["language"], "zh");
    assert!(one["detectedLanguage"]["confidence"].is_number());
    let body = json!({"q": ["一辆", "两辆"], "source": "auto", "target": "en", "alternatives": 1});
    let many = post(&server, "/translate", &body).json();
    assert_eq!(many["translatedText"].as_array().map(Vec::len), Some(2));
    assert_eq!(many["alternatives"][1].as_array().map(Vec::len), Some(1));
    assert_eq!(many["detectedLanguage"][1]["language"], "zh");
}

#[test]
fn tags_scripts_and_styles_of_a_page_are_kept() {
    let (server, _folder) = serving();
    let page = "<p class=\"x\">一辆 &amp; 汽车</p><script>if (a < b) { \"一\" }</script>";
    let body = json!({"q": page, "source": "zh", "target": "en", "format": "html"});
    let text = post(&server, "/translate", &body).json()["translatedText"].as_str().expect("text").to_owned();
    assert!(
        text.starts_with("<p class=\"x\">") && text.ends_with("<script>if (a < b) { \"一\" }</script>"),
        "{text}"
    );
    let inside = &text["<p class=\"x\">".len()..text.find("</p>").expect("the end")];
    assert!(!inside.contains('<') && !inside.contains('>'), "{inside}");
}

#[test]
fn a_page_is_translated_by_sentence_with_every_tag_once() {
    let (server, _folder) = serving();
    let translate = |text: &str, format: &str, alternatives: usize| {
        let body = json!({"q": text, "source": "zh", "target": "en", "format": format, "alternatives": alternatives});
        post(&server, "/translate", &body).json()
    };
    let without_tags = |page: &str| {
        let after = page.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
        after.collect::<String>()
    };
    let text = "一辆汽车 一套房子";
    for page in [
        "<p>一辆<b>汽车</b> 一套<i>房<u>子</u></i></p>",
        "<p>一<b>辆汽车 一套</b>房子</p>",
        "<p><a href=\"/x\">一辆</a>汽车<img src=y> 一套房子</p>",
    ] {
        let (html, plain) = (translate(page, "html", 1), translate(text, "text", 1));
        let pairs = [
            (&html["translatedText"], &plain["translatedText"]),
            (&html["alternatives"][0], &plain["alternatives"][0]),
        ];
        for (html, plain) in pairs {
            let (html, plain) = (html.as_str().expect("text"), plain.as_str().expect("text"));
            let escaped = plain.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            assert_eq!(without_tags(html), escaped, "{page} became {html}");
            assert_eq!(html.matches('<').count(), page.matches('<').count(), "{page} became {html}");
        }
    }
}

#[test]
fn languages_settings_and_detection_are_as_expected() {
    let (server, _folder) = serving();
    let languages = get(&server, "/languages").json();
    assert_eq!(
        languages,
        json!([{"code": "zh", "name": "Chinese", "targets": ["en"]}, {"code": "en", "name": "English", "targets": []}])
    );
    let settings = get(&server, "/frontend/settings").json();
    assert_eq!(settings["keyRequired"], false);
    assert_eq!(settings["language"]["source"], json!({"code": "zh", "name": "Chinese"}));
    let detected = post(&server, "/detect", &json!({"q": "这是一套自动驾驶解决方案。"})).json();
    assert_eq!(detected[0]["language"], "zh");
    assert_eq!(get(&server, "/health").json(), json!({"status": "ok"}));
}

#[test]
fn errors_name_the_invalid_field() {
    let (server, _folder) = serving();
    let text = "text";
    for (body, status, part) in [
        (json!({"source": "zh", "target": "en"}), 400, "`q` is missing"),
        (json!({"q": 5, "source": "zh", "target": "en"}), 400, "`q` must be a string"),
        (json!({"q": text, "target": "en"}), 400, "`source` is missing"),
        (json!({"q": text, "source": "zh", "target": ["en"]}), 400, "`target` must be a string"),
        (json!({"q": text, "source": "fr", "target": "en"}), 400, "no model translates from fr to en"),
        (json!({"q": text, "source": "zh", "target": "en", "format": "pdf"}), 400, "`format`"),
        (json!({"q": text, "source": "zh", "target": "en", "alternatives": 99}), 400, "`alternatives`"),
        (json!({"q": "字".repeat(300_000), "source": "zh", "target": "en"}), 413, "300000 characters"),
        (json!({"q": "一。".repeat(3000), "source": "zh", "target": "en"}), 413, "3000 sentences"),
    ] {
        let reply = post(&server, "/translate", &body);
        assert_eq!(reply.status, status, "{}", reply.body);
        assert!(reply.error().contains(part), "{}", reply.error());
    }
}

#[test]
fn keys_are_required_and_have_rates() {
    let folder = tempfile::tempdir().expect("a folder");
    crate::models::translator(&folder.path().join("zh-en"), 4);
    let keys = folder.path().join("keys.json");
    fs::write(&keys, r#"[{"key": "guest", "requests_per_minute": 0.001}, {"key": "owner", "admin": true}]"#)
        .expect("room");
    let models = vec![heedful_server::ModelSpec::named("zh-en", folder.path().join("zh-en"))];
    let server = Server::start(ServerOptions { keys: Some(keys), ..options(models) }).expect("a server");
    let ask = |key: &str| {
        let body = json!({"q": "一辆", "source": "zh", "target": "en", "api_key": key});
        post(&server, "/translate", &body)
    };
    let without = post(&server, "/translate", &json!({"q": "一辆", "source": "zh", "target": "en"}));
    assert_eq!((without.status, ask("nobody").status), (403, 403));
    assert_eq!((ask("guest").status, ask("owner").status), (200, 200));
    let again = ask("guest");
    assert_eq!(again.status, 429);
    assert!(again.header("retry-after").is_some_and(|seconds| seconds.parse::<u64>().is_ok()));
}

#[test]
fn pages_of_other_origins_need_allow_origin() {
    let (closed, folder) = serving();
    assert_eq!(get(&closed, "/languages").header("access-control-allow-origin"), None);
    let models = vec![heedful_server::ModelSpec::named("zh-en", folder.path().join("zh-en"))];
    let allow_origin = Some("https://example.org".to_owned());
    let open = Server::start(ServerOptions { allow_origin, ..options(models) }).expect("a server");
    let preflight = send(open.address(), request("OPTIONS", "/translate", "text/plain", "").as_bytes());
    assert_eq!(preflight.status, 204);
    assert_eq!(preflight.header("access-control-allow-origin"), Some("https://example.org"));
    assert!(
        preflight.header("access-control-allow-headers").is_some_and(|names| names.contains("content-type"))
    );
}
