//! Which route a method and a path take.
//!
//! API Gateway's order: a literal path before one with `{names}`, that before a greedy `{name+}`, and `$default` last; of equal paths the
//! exact method before `ANY`.

use crate::query::decoded;
use std::collections::BTreeMap;

/// Routes with what each leads to.
#[derive(Clone, Debug)]
pub struct Routes<T> {
    routes: Vec<Route<T>>,
}

#[derive(Clone, Debug)]
struct Route<T> {
    method: String,
    path: String,
    pattern: Vec<Element>,
    target: T,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Element {
    Literal(String),
    Name(String),
    Greedy(String),
}

/// A route that fits.
#[derive(Debug)]
pub struct Found<'r, T> {
    /// The route's method, or `ANY`.
    pub method: &'r str,
    /// The route's path.
    pub path: &'r str,
    /// What stood for its names, decoded.
    pub parameters: BTreeMap<String, String>,
    /// What the route leads to.
    pub target: &'r T,
}

/// A path that is not a route's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path:?} is not a route: {why}")]
pub struct BadPath {
    /// The path.
    pub path: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl<T> Default for Routes<T> {
    fn default() -> Routes<T> {
        Routes { routes: Vec::new() }
    }
}

impl<T> Routes<T> {
    /// Adds a route; a method of `ANY` takes all.
    pub fn add(&mut self, method: &str, path: &str, target: T) -> Result<(), BadPath> {
        let pattern = pattern(path).map_err(|why| BadPath { path: path.to_owned(), why })?;
        let method = method.to_ascii_uppercase();
        self.routes.push(Route { method, path: path.to_owned(), pattern, target });
        Ok(())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// The best route for a request; `path` with its escapes.
    pub fn find(&self, method: &str, path: &str) -> Option<Found<'_, T>> {
        let elements: Vec<&str> = split(path).collect();
        let fits = self.routes.iter().filter_map(|route| {
            let is_any = route.method == "ANY";
            if !is_any && !route.method.eq_ignore_ascii_case(method) {
                return None;
            }
            let parameters = matched(&route.pattern, &elements)?;
            Some(((rank(&route.pattern), is_any), route, parameters))
        });
        let (_, route, parameters) = fits.min_by(|(a, ..), (b, ..)| a.cmp(b))?;
        Some(Found { method: &route.method, path: &route.path, parameters, target: &route.target })
    }
}

/// `$default` is a greedy path whose name nobody asks for.
fn pattern(path: &str) -> Result<Vec<Element>, &'static str> {
    if path == "$default" {
        return Ok(vec![Element::Greedy(String::new())]);
    }
    if !path.starts_with('/') {
        return Err("it begins with / or is $default");
    }
    let elements: Vec<Element> = split(path).map(element).collect::<Result<_, _>>()?;
    let greedy_inside = elements.iter().rev().skip(1).any(|element| matches!(element, Element::Greedy(_)));
    if greedy_inside { Err("only the last element may be greedy") } else { Ok(elements) }
}

fn element(text: &str) -> Result<Element, &'static str> {
    let Some(inner) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
        let braces = text.contains(['{', '}']);
        return if braces { Err("{name} is a whole element") } else { Ok(Element::Literal(decoded(text))) };
    };
    let name = inner.strip_suffix('+').unwrap_or(inner);
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "._-:".contains(c)) {
        return Err("a name is made of letters, digits and . _ - :");
    }
    Ok(if inner.ends_with('+') { Element::Greedy(name.to_owned()) } else { Element::Name(name.to_owned()) })
}

/// The elements of a path; an empty last one (a trailing slash) does not count.
fn split(path: &str) -> impl Iterator<Item = &str> {
    let trimmed = path.strip_prefix('/').unwrap_or(path);
    let trimmed = trimmed.strip_suffix('/').unwrap_or(trimmed);
    trimmed.split('/').filter(move |_| !trimmed.is_empty())
}

fn matched(pattern: &[Element], elements: &[&str]) -> Option<BTreeMap<String, String>> {
    let mut parameters = BTreeMap::new();
    let mut rest = elements;
    for part in pattern {
        match part {
            Element::Greedy(name) if name.is_empty() => return Some(parameters),
            Element::Greedy(name) if !rest.is_empty() => {
                parameters.insert(name.clone(), decoded(&rest.join("/")));
                return Some(parameters);
            }
            Element::Greedy(_) => return None,
            Element::Literal(text) => {
                let (first, others) = rest.split_first()?;
                (decoded(first) == *text).then_some(())?;
                rest = others;
            }
            Element::Name(name) => {
                let (first, others) = rest.split_first()?;
                parameters.insert(name.clone(), decoded(first));
                rest = others;
            }
        }
    }
    rest.is_empty().then_some(parameters)
}

/// Element by element: literal, name, greedy, `$default`.
fn rank(pattern: &[Element]) -> Vec<u8> {
    let of = |element: &Element| match element {
        Element::Literal(_) => 0,
        Element::Name(_) => 1,
        Element::Greedy(name) if !name.is_empty() => 2,
        Element::Greedy(_) => 3,
    };
    pattern.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_most_special_route_wins() {
        let mut routes = Routes::default();
        for (method, path) in [
            ("ANY", "$default"),
            ("GET", "/orders/{id}"),
            ("ANY", "/orders/{id}"),
            ("GET", "/orders/latest"),
            ("ANY", "/files/{path+}"),
            ("GET", "/"),
        ] {
            routes.add(method, path, format!("{method} {path}")).expect("a route");
        }
        for (method, path, expect) in [
            ("GET", "/orders/latest", "GET /orders/latest "),
            ("GET", "/orders/7", "GET /orders/{id} id=7"),
            ("POST", "/orders/a%20b", "ANY /orders/{id} id=a b"),
            ("GET", "/orders/7/", "GET /orders/{id} id=7"),
            ("GET", "/files/a/b.txt", "ANY /files/{path+} path=a/b.txt"),
            ("GET", "/files", "ANY $default "),
            ("GET", "/", "GET / "),
            ("POST", "/", "ANY $default "),
            ("DELETE", "/x/y/z", "ANY $default "),
        ] {
            let found = routes.find(method, path).expect("there is a default");
            let parameters: Vec<String> = found.parameters.iter().map(|(k, v)| format!("{k}={v}")).collect();
            assert_eq!(format!("{} {}", found.target, parameters.join(",")), expect, "{method} {path}");
        }
    }

    #[test]
    fn what_is_no_route_says_why() {
        for (path, why) in [
            ("orders", "begins with /"),
            ("/{a+}/b", "greedy"),
            ("/x{a}", "whole element"),
            ("/{}", "letters"),
        ] {
            let error = Routes::default().add("GET", path, ()).expect_err("bad").to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_path_finds_or_not(path in "[/a-c{}+%0-9]{0,30}", asked in "[/a-c%0-9]{0,30}") {
            let mut routes = Routes::default();
            if routes.add("GET", &path, ()).is_ok()
                && let Some(found) = routes.find("GET", &asked)
            {
                prop_assert_eq!(found.path, path);
            }
        }
    }
}
