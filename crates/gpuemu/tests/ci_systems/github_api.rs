//! A server on this machine that answers as GitHub's REST API does where comments of a pull request are concerned.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// A comment of the pull request.
#[derive(Debug, Clone, PartialEq)]
pub struct Comment {
    pub id: u64,
    pub body: String,
}

/// What the server knows.
#[derive(Debug, Default)]
pub struct Served {
    /// The comments, oldest first.
    pub comments: Vec<Comment>,
    /// The requests that were made: method and path.
    pub requests: Vec<(String, String)>,
    /// Whether the token may only read.
    pub read_only: bool,
}

/// The server. Its thread ends with the test's process.
pub struct GithubApi {
    /// Its address, as `GITHUB_API_URL` has it.
    pub url: String,
    pub served: Arc<Mutex<Served>>,
}

impl GithubApi {
    /// Starts a server that knows these comments.
    pub fn start(comments: Vec<Comment>, read_only: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/api/v3", listener.local_addr().unwrap());
        let served = Arc::new(Mutex::new(Served { comments, read_only, requests: Vec::new() }));
        let shared = served.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                answer(&stream.unwrap(), &mut shared.lock().unwrap());
            }
        });
        Self { url, served }
    }

    /// The methods of the requests so far, which are then forgotten.
    pub fn methods(&self) -> Vec<String> {
        std::mem::take(&mut self.served.lock().unwrap().requests).into_iter().map(|(method, _)| method).collect()
    }

    pub fn comments(&self) -> Vec<Comment> {
        self.served.lock().unwrap().comments.clone()
    }
}

fn answer(mut stream: &TcpStream, served: &mut Served) {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_string()),
        }
    }
    let header = |name: &str| {
        let named = lines[1..].iter().filter_map(|line| line.split_once(": "));
        named.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_string()).next()
    };
    if header("Expect").is_some() {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
    }
    let length = header("Content-Length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let (method, path) = lines[0].split_once(' ').unwrap();
    let path = path.split(' ').next().unwrap();
    let (status, answer) = match header("Authorization").as_deref() {
        Some("Bearer the-token") => handle(method, path, &body, served),
        _ => (401, json!({ "message": "Bad credentials" })),
    };
    served.requests.push((method.to_string(), path.to_string()));
    let text = answer.to_string();
    let head = format!("HTTP/1.1 {status} -\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", text.len());
    stream.write_all((head + &text).as_bytes()).unwrap();
}

fn handle(method: &str, path: &str, body: &[u8], served: &mut Served) -> (u16, Value) {
    let shown = |comment: &Comment| {
        let url = format!("https://github.com/owner/kernels/pull/7#issuecomment-{}", comment.id);
        json!({ "id": comment.id, "body": comment.body, "html_url": url })
    };
    if method != "GET" && served.read_only {
        return (403, json!({ "message": "Resource not accessible by integration" }));
    }
    let text = || {
        let document: Value = serde_json::from_slice(body).unwrap();
        document["body"].as_str().unwrap().to_string()
    };
    let list = "/api/v3/repos/owner/kernels/issues/7/comments";
    if method == "GET"
        && let Some(page) = path.strip_prefix(list).and_then(|query| query.strip_prefix("?per_page=100&page="))
    {
        let page: usize = page.parse().unwrap();
        let comments = served.comments.iter().skip((page - 1) * 100).take(100);
        return (200, comments.map(shown).collect());
    }
    if method == "POST" && path == list {
        let body = text();
        if body.chars().count() > 65_536 {
            return (422, json!({ "message": "Validation Failed" }));
        }
        let id = served.comments.iter().map(|comment| comment.id).max().unwrap_or(0) + 1;
        served.comments.push(Comment { id, body });
        return (201, served.comments.last().map(shown).unwrap());
    }
    let number = path.strip_prefix("/api/v3/repos/owner/kernels/issues/comments/").and_then(|id| id.parse().ok());
    if method == "PATCH"
        && let Some(comment) = served.comments.iter_mut().find(|comment| Some(comment.id) == number)
    {
        comment.body = text();
        return (200, shown(comment));
    }
    (404, json!({ "message": "Not Found" }))
}
