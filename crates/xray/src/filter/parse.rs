//! The grammar, by recursive descent. `AND` binds tighter than `OR`, `NOT` tighter than both.

use super::{BadFilter, Compare, Field, Filter, Flag, Quantity};

/// Parentheses and `NOT`s inside each other.
const MAX_DEPTH: usize = 64;
/// Longest expression that is read, in bytes: AWS's limit is 2,048 characters.
const MAX_BYTES: usize = 8_192;

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

/// A value on the right of a comparison.
enum Given {
    Number(f64),
    Text(String),
}

pub(super) fn expression(text: &str) -> Result<Filter, BadFilter> {
    if text.len() > MAX_BYTES {
        return Err(BadFilter { at: MAX_BYTES, what: format!("an expression of at most {MAX_BYTES} bytes") });
    }
    let mut reader = Reader { text, at: 0, depth: 0 };
    let filter = reader.either()?;
    reader.space();
    if reader.at < text.len() {
        return Err(reader.bad("AND, OR or the end"));
    }
    Ok(filter)
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn bad(&self, what: &str) -> BadFilter {
        BadFilter { at: self.at, what: what.to_owned() }
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Takes a mark.
    fn mark(&mut self, mark: &str) -> bool {
        self.space();
        let there = self.rest().starts_with(mark);
        self.at += if there { mark.len() } else { 0 };
        there
    }

    /// The word that is next, without taking it: letters, digits, `.` and `_`.
    fn word(&mut self) -> &'a str {
        self.space();
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '.' || c == '_' || c == '-'));
        &rest[..end.unwrap_or(rest.len())]
    }

    /// Takes a word that joins; case does not matter.
    fn joint(&mut self, joint: &str) -> bool {
        let there = self.word().eq_ignore_ascii_case(joint);
        self.at += if there { joint.len() } else { 0 };
        there
    }

    fn either(&mut self) -> Result<Filter, BadFilter> {
        let mut left = self.both()?;
        while self.joint("OR") {
            left = Filter::Or(Box::new(left), Box::new(self.both()?));
        }
        Ok(left)
    }

    fn both(&mut self) -> Result<Filter, BadFilter> {
        let mut left = self.one()?;
        while self.joint("AND") {
            left = Filter::And(Box::new(left), Box::new(self.one()?));
        }
        Ok(left)
    }

    fn one(&mut self) -> Result<Filter, BadFilter> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.bad("fewer parentheses"));
        }
        let filter = if self.mark("!") || self.joint("NOT") {
            Filter::Not(Box::new(self.one()?))
        } else if self.mark("(") {
            let inner = self.either()?;
            if !self.mark(")") {
                return Err(self.bad("a closing parenthesis"));
            }
            inner
        } else {
            self.keyword()?
        };
        self.depth -= 1;
        Ok(filter)
    }

    fn keyword(&mut self) -> Result<Filter, BadFilter> {
        let word = self.word();
        let word_at = self.at;
        self.at += word.len();
        match word.to_ascii_lowercase().as_str() {
            "ok" => self.flag(Flag::Ok),
            "error" => self.flag(Flag::Error),
            "fault" => self.flag(Flag::Fault),
            "throttle" => self.flag(Flag::Throttle),
            "partial" => self.flag(Flag::Partial),
            "responsetime" => self.number(Quantity::ResponseTime),
            "duration" => self.number(Quantity::Duration),
            "http.status" => self.number(Quantity::HttpStatus),
            "http.url" => self.text(Field::HttpUrl),
            "http.method" => self.text(Field::HttpMethod),
            "user" => self.text(Field::User),
            "service" => self.service(),
            "annotation" => {
                let key = self.in_brackets()?;
                self.annotation(key)
            }
            _ if word.get(..11).is_some_and(|head| head.eq_ignore_ascii_case("annotation.")) => {
                self.annotation(word[11..].to_owned())
            }
            _ => Err(BadFilter {
                at: word_at,
                what: "a keyword: responsetime, duration, http.status, http.url, http.method, user, annotation[key], service(\"…\"), \
                       ok, error, fault, throttle, partial"
                    .to_owned(),
            }),
        }
    }

    /// `error`, or `error = true`.
    fn flag(&mut self, flag: Flag) -> Result<Filter, BadFilter> {
        let is = Filter::Is(flag);
        let negated = if self.mark("!=") {
            true
        } else if self.mark("=") {
            false
        } else {
            return Ok(is);
        };
        let truth = if self.joint("true") {
            true
        } else if self.joint("false") {
            false
        } else {
            return Err(self.bad("true or false"));
        };
        Ok(if truth == negated { Filter::Not(Box::new(is)) } else { is })
    }

    fn number(&mut self, quantity: Quantity) -> Result<Filter, BadFilter> {
        let compare = self.compare(false)?;
        match self.value()? {
            Given::Number(n) => Ok(Filter::Number(quantity, compare, n)),
            Given::Text(_) => Err(self.bad("a number")),
        }
    }

    fn text(&mut self, field: Field) -> Result<Filter, BadFilter> {
        let compare = self.compare(true)?;
        match self.value()? {
            Given::Text(text) => Ok(Filter::Text(field, compare, text)),
            Given::Number(_) => Err(self.bad("a text in double quotes")),
        }
    }

    fn annotation(&mut self, key: String) -> Result<Filter, BadFilter> {
        let before = self.at;
        let textual = self.compare(true);
        if let Ok(compare) = textual
            && let Ok(Given::Text(text)) = self.value()
        {
            return Ok(Filter::Text(Field::Annotation(key), compare, text));
        }
        self.at = before;
        self.number(Quantity::Annotation(key))
    }

    fn service(&mut self) -> Result<Filter, BadFilter> {
        if !self.mark("(") {
            return Err(self.bad("a name in parentheses"));
        }
        let Given::Text(name) = self.value()? else { return Err(self.bad("a name in double quotes")) };
        if self.mark(")") { Ok(Filter::Service(name)) } else { Err(self.bad("a closing parenthesis")) }
    }

    fn in_brackets(&mut self) -> Result<String, BadFilter> {
        if !self.mark("[") {
            return Err(self.bad("a key in brackets"));
        }
        let key = match self.rest().starts_with('"') {
            true => match self.value()? {
                Given::Text(key) => key,
                Given::Number(_) => return Err(self.bad("a key")),
            },
            false => {
                let key = self.word();
                self.at += key.len();
                key.to_owned()
            }
        };
        if self.mark("]") { Ok(key) } else { Err(self.bad("a closing bracket")) }
    }

    fn compare(&mut self, text: bool) -> Result<Compare, BadFilter> {
        let marks = [
            ("!=", Compare::Unequal),
            ("<=", Compare::AtMost),
            (">=", Compare::AtLeast),
            ("=", Compare::Equal),
            ("<", Compare::Less),
            (">", Compare::More),
        ];
        let fits = |compare: Compare| !text || matches!(compare, Compare::Equal | Compare::Unequal);
        for (mark, compare) in marks {
            if fits(compare) && self.mark(mark) {
                return Ok(compare);
            }
        }
        let words =
            [("CONTAINS", Compare::Contains), ("BEGINSWITH", Compare::Begins), ("ENDSWITH", Compare::Ends)];
        for (word, compare) in words {
            if text && self.joint(word) {
                return Ok(compare);
            }
        }
        Err(self.bad(if text { "=, !=, CONTAINS, BEGINSWITH or ENDSWITH" } else { "=, !=, <, <=, > or >=" }))
    }

    /// A number, or a text in double quotes in which `\` takes the next character as it is.
    fn value(&mut self) -> Result<Given, BadFilter> {
        if !self.mark("\"") {
            let word = self.word();
            let number = word.parse::<f64>().ok().filter(|n| n.is_finite());
            let number = number.ok_or_else(|| self.bad("a number, or a text in double quotes"))?;
            self.at += word.len();
            return Ok(Given::Number(number));
        }
        let mut text = String::new();
        let mut characters = self.rest().char_indices();
        while let Some((at, c)) = characters.next() {
            match c {
                '"' => {
                    self.at += at + 1;
                    return Ok(Given::Text(text));
                }
                '\\' => text.extend(characters.next().map(|(_, c)| c)),
                c => text.push(c),
            }
        }
        Err(self.bad("a closing quote"))
    }
}
