//! S3: a place where deployments put zips. Objects are in memory and bounded; what a function was made of is kept elsewhere.

use super::xml::tag;
use crate::api::Api;
use crate::fault::{Fault, Kind};
use crate::request::{Outcome, Reply, Request};
use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All objects together.
const BYTES: usize = 512 * 1024 * 1024;
/// Buckets; each may be empty.
const BUCKETS: usize = 1_000;

/// Buckets with their objects.
#[derive(Default)]
pub struct Buckets {
    all: Mutex<BTreeMap<String, Bucket>>,
}

#[derive(Default)]
struct Bucket {
    objects: BTreeMap<String, Bytes>,
    /// Uploads in parts, by id.
    uploads: BTreeMap<String, BTreeMap<u32, Bytes>>,
}

/// Why there is no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    Bucket,
    Key,
}

impl Missing {
    /// S3's code and message.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            Missing::Bucket => ("NoSuchBucket", "The specified bucket does not exist"),
            Missing::Key => ("NoSuchKey", "The specified key does not exist."),
        }
    }
}

impl Buckets {
    pub fn object(&self, bucket: &str, key: &str) -> Result<Bytes, Missing> {
        let all = self.lock();
        let bucket = all.get(bucket).ok_or(Missing::Bucket)?;
        bucket.objects.get(key).cloned().ok_or(Missing::Key)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Bucket>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn size(all: &BTreeMap<String, Bucket>) -> usize {
    let of = |bucket: &Bucket| {
        let parts = bucket.uploads.values().flat_map(BTreeMap::values);
        bucket.objects.values().chain(parts).map(Bytes::len).sum::<usize>()
    };
    all.values().map(of).sum()
}

pub fn answer(api: &Arc<Api>, request: &Request) -> Outcome {
    let (bucket, key) = place(request);
    let mut all = api.buckets.lock();
    if bucket.is_empty() {
        let names: String =
            all.keys().map(|name| format!("<Bucket>{}</Bucket>", tag("Name", name))).collect();
        let list = format!("<ListAllMyBucketsResult><Buckets>{names}</Buckets></ListAllMyBucketsResult>");
        return Ok(Reply::xml(200, list));
    }
    match (request.method.as_str(), key.is_empty()) {
        ("PUT", true) if all.len() < BUCKETS => {
            all.entry(bucket.clone()).or_default();
            Ok(Reply::empty(200).header("Location", format!("/{bucket}")))
        }
        ("HEAD", true) => found(&all, &bucket).map(|_| Reply::empty(200)),
        ("GET", true) if request.query("location").is_some() => {
            found(&all, &bucket)?;
            Ok(Reply::xml(200, "<LocationConstraint/>".to_owned()))
        }
        ("GET", true) => list(found(&all, &bucket)?, &bucket, request.query("prefix").unwrap_or_default()),
        ("DELETE", true) => delete(&mut all, &bucket),
        ("PUT" | "POST", false) => write(api, request, &mut all, &bucket, &key),
        ("GET" | "HEAD", false) => read(request, found(&all, &bucket)?, &key),
        ("DELETE", false) => {
            found_mut(&mut all, &bucket)?.objects.remove(&key);
            Ok(Reply::empty(204))
        }
        (method, _) => {
            Err(Fault::new(Kind::NotOffered, format!("danki does not offer {method} of this in S3")))
        }
    }
}

/// `/bucket/key`, or the bucket as first label of the host name.
fn place(request: &Request) -> (String, String) {
    let host = request.host.split(':').next().unwrap_or_default();
    let virtual_host =
        host.split_once('.').filter(|(_, rest)| *rest == "localhost" || rest.starts_with("s3."));
    let path = request.path.trim_start_matches('/');
    match virtual_host {
        Some((bucket, _)) => (bucket.to_owned(), path.to_owned()),
        None => {
            let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
            (bucket.to_owned(), key.to_owned())
        }
    }
}

fn missing(what: Missing) -> Fault {
    let (code, message) = what.words();
    Fault::new(Kind::S3(code, 404), message)
}

fn found<'a>(all: &'a BTreeMap<String, Bucket>, bucket: &str) -> Result<&'a Bucket, Fault> {
    all.get(bucket).ok_or_else(|| missing(Missing::Bucket))
}

fn found_mut<'a>(all: &'a mut BTreeMap<String, Bucket>, bucket: &str) -> Result<&'a mut Bucket, Fault> {
    all.get_mut(bucket).ok_or_else(|| missing(Missing::Bucket))
}

fn delete(all: &mut BTreeMap<String, Bucket>, bucket: &str) -> Outcome {
    if !found(all, bucket)?.objects.is_empty() {
        let message = "The bucket you tried to delete is not empty";
        return Err(Fault::new(Kind::S3("BucketNotEmpty", 409), message));
    }
    all.remove(bucket);
    Ok(Reply::empty(204))
}

fn list(bucket: &Bucket, name: &str, prefix: &str) -> Outcome {
    let keys = bucket.objects.iter().filter(|(key, _)| key.starts_with(prefix)).take(1_000);
    let contents: String = keys
        .map(|(key, object)| {
            let fields =
                tag("Key", key) + &tag("Size", &object.len().to_string()) + &tag("ETag", &etag(object));
            format!("<Contents>{fields}</Contents>")
        })
        .collect();
    let head = tag("Name", name) + &tag("Prefix", prefix) + "<IsTruncated>false</IsTruncated>";
    Ok(Reply::xml(200, format!("<ListBucketResult>{head}{contents}</ListBucketResult>")))
}

fn read(request: &Request, bucket: &Bucket, key: &str) -> Outcome {
    let object = bucket.objects.get(key).ok_or_else(|| missing(Missing::Key))?;
    let body = if request.method == "HEAD" { Bytes::new() } else { object.clone() };
    Ok(Reply::bytes(200, body).header("ETag", etag(object)))
}

/// An object, or a part of one, or the beginning or end of an upload in parts.
fn write(api: &Api, request: &Request, all: &mut BTreeMap<String, Bucket>, name: &str, key: &str) -> Outcome {
    let body = match request.header("content-encoding").is_some_and(|e| e.contains("aws-chunked")) {
        true => unchunked(&request.body).ok_or_else(|| Fault::invalid("the aws-chunked body is broken"))?,
        false => request.body.clone(),
    };
    if size(all) + body.len() > BYTES {
        return Err(Fault::new(
            Kind::RequestEntityTooLarge,
            format!("danki's S3 holds {BYTES} bytes in all"),
        ));
    }
    let bucket = found_mut(all, name)?;
    let Some(upload) = request.query("uploadId") else {
        if request.query("uploads").is_some() {
            let id = api.uuid();
            bucket.uploads.insert(id.clone(), BTreeMap::new());
            let result = tag("Bucket", name) + &tag("Key", key) + &tag("UploadId", &id);
            return Ok(Reply::xml(
                200,
                format!("<InitiateMultipartUploadResult>{result}</InitiateMultipartUploadResult>"),
            ));
        }
        let tag = etag(&body);
        bucket.objects.insert(key.to_owned(), body);
        return Ok(Reply::empty(200).header("ETag", tag));
    };
    let unknown = || Fault::new(Kind::S3("NoSuchUpload", 404), "The specified upload does not exist.");
    if let Some(number) = request.query("partNumber").and_then(|n| n.parse().ok()) {
        let tag = etag(&body);
        bucket.uploads.get_mut(upload).ok_or_else(unknown)?.insert(number, body);
        return Ok(Reply::empty(200).header("ETag", tag));
    }
    let parts = bucket.uploads.remove(upload).ok_or_else(unknown)?;
    let whole: BytesMut = parts.into_values().flatten().collect();
    let whole = whole.freeze();
    let result = tag("Bucket", name) + &tag("Key", key) + &tag("ETag", &etag(&whole));
    bucket.objects.insert(key.to_owned(), whole);
    Ok(Reply::xml(200, format!("<CompleteMultipartUploadResult>{result}</CompleteMultipartUploadResult>")))
}

/// Opaque to clients: a hash of the bytes, quoted.
fn etag(bytes: &[u8]) -> String {
    let hash = crate::code::sha256(bytes);
    format!("\"{}\"", hash.chars().filter(|c| c.is_ascii_alphanumeric()).take(32).collect::<String>())
}

/// `size[;chunk-signature=…]\r\n bytes \r\n … 0…\r\n trailers`.
fn unchunked(body: &Bytes) -> Option<Bytes> {
    let mut whole = BytesMut::with_capacity(body.len());
    let mut rest = body.clone();
    loop {
        let end = rest.windows(2).position(|w| w == b"\r\n")?;
        let head = rest.split_to(end + 2);
        let size = head.split(|b| *b == b';' || *b == b'\r').next()?;
        let size = usize::from_str_radix(std::str::from_utf8(size).ok()?, 16).ok()?;
        if size == 0 {
            return Some(whole.freeze());
        }
        if rest.len() < size.checked_add(2)? {
            return None;
        }
        whole.extend_from_slice(&rest.split_to(size));
        let _line_end = rest.split_to(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn chunks_are_joined() {
        let body = Bytes::from_static(
            b"3;chunk-signature=x\r\nabc\r\n2\r\nde\r\n0\r\nx-amz-checksum-crc32:1\r\n\r\n",
        );
        assert_eq!(unchunked(&body).as_deref(), Some(&b"abcde"[..]));
        assert_eq!(unchunked(&Bytes::from_static(b"9\r\nabc\r\n")), None);
        assert_eq!(unchunked(&Bytes::from_static(b"zz\r\n")), None);
    }

    proptest! {
        #[test]
        fn any_body_is_joined_or_refused(body in prop::collection::vec(any::<u8>(), 0..100)) {
            unchunked(&Bytes::from(body));
        }
    }
}
