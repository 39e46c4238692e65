//! One invocation's waterfall for a terminal.

use crate::read::Run;
use danki_explain::{Call, Facts, Waterfall, waterfall};
use danki_record::{Invocation, Span};
use std::fmt::Write as _;

/// Widths of the columns left and right of the bars.
const LEFT: usize = 22;
const RIGHT: usize = 12;
/// Calls that are drawn.
const CALLS: usize = 40;

/// The invocation whose id begins with `id`, drawn; none if there is none, or several.
pub fn draw(run: &Run, id: &str, width: usize) -> Option<String> {
    let facts = Facts::gather(&run.events);
    let mut found = facts.invocations.iter().filter(|i| i.request_id.0.starts_with(id));
    let invocation = found.next()?;
    if found.next().is_some() {
        return None;
    }
    Some(page(invocation, &waterfall(invocation, &facts), width.clamp(60, 200)))
}

fn page(i: &Invocation, w: &Waterfall, width: usize) -> String {
    let ms = |ns: u64| ns as f64 / 1e6;
    let bars = Bars { whole: w.span, width: width - LEFT - RIGHT - 2 };
    let mut text = format!(
        "{} · {} · {} · Duration {:.2} ms, from dispatch to response {:.2} ms\n\n",
        i.request_id,
        i.variant,
        i.env,
        i.duration_ms,
        ms(w.total())
    );
    for (part, ns) in w.iter().filter(|(_, ns)| *ns > 0) {
        let mine = w.segments.iter().filter(|s| s.part == part).map(|s| s.span);
        let share = 100.0 * ns as f64 / w.total().max(1) as f64;
        line(&mut text, part.name(), &bars.row(mine, '█'), &format!("{:.2} ms", ms(ns)));
        write!(text, "{:>6.1} %", share).expect("a String takes all");
        text.push('\n');
    }
    line(&mut text, "sum", "", &format!("{:.2} ms", ms(w.total())));
    text.push_str("\n\n");
    for call in w.calls.iter().take(CALLS) {
        let row = bars.row([call.span].into_iter(), '─');
        let served = bars.row([call.service_time].into_iter(), '█');
        let both: String =
            row.chars().zip(served.chars()).map(|(a, b)| if b == '█' { b } else { a }).collect();
        line(&mut text, &call.operation, &both, &format!("{:.2} ms", call.ms()));
        writeln!(text, "  {}", connection(call)).expect("a String takes all");
    }
    if w.calls.len() > CALLS {
        writeln!(text, "… and {} more calls", w.calls.len() - CALLS).expect("a String takes all");
    }
    text
}

fn line(text: &mut String, name: &str, bar: &str, right: &str) {
    let name: String = name.chars().take(LEFT - 1).collect();
    write!(text, "{name:<LEFT$}{bar} {right:>RIGHT$}").expect("a String takes all");
}

fn connection(c: &Call) -> String {
    let port = c.client.port();
    match (&c.setup, c.idle_before_ns) {
        (Some(_), _) => format!(":{port} new, {:.2} ms to set up", c.setup_ms()),
        (None, Some(idle)) => format!(":{port} kept, idle {:.2} s", idle as f64 / 1e9),
        (None, None) => format!(":{port}"),
    }
}

/// Spans as characters.
struct Bars {
    whole: Span,
    width: usize,
}

impl Bars {
    /// A span marks at least one character: what is short is seen too.
    fn row(&self, spans: impl Iterator<Item = Span>, mark: char) -> String {
        let mut cells = vec![' '; self.width];
        let length = self.whole.len_ns().max(1) as f64;
        let at = |ns: u64| {
            let share = ns.saturating_sub(self.whole.from_ns) as f64 / length;
            ((share * self.width as f64) as usize).min(self.width - 1)
        };
        for s in spans {
            let last = at(s.to_ns.max(s.from_ns + 1) - 1);
            cells[at(s.from_ns)..=last.max(at(s.from_ns))].fill(mark);
        }
        cells.into_iter().collect()
    }
}
