//! A page for people: queues, counts, and the switches in force. Read only, without a script.

use std::fmt::Write as _;

use super::{
    Faults, QueueReport,
    state::{State, lock},
};
use crate::connectors::mns::wire::escape;

const HEAD: &str = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"2\">\
<title>queuewarden emulator</title><style>\
body{font:14px/1.5 system-ui,sans-serif;margin:2em}table{border-collapse:collapse}\
th,td{padding:.2em .8em;border-bottom:1px solid #ccc;text-align:left;vertical-align:top}\
.n{text-align:right;font-variant-numeric:tabular-nums}</style></head><body>\n<h1>queuewarden emulator</h1>\n";

/// What a queue holds, and what it is ordered to do wrong.
struct Row {
    name: String,
    report: QueueReport,
    faults: Faults,
}

pub(super) fn render(state: &State) -> String {
    let now = state.clock.now_ms();
    let rows = state.cells().into_iter().map(|(name, cell)| {
        let mut queue = lock(&cell.queue);
        Row { name, report: queue.report(now), faults: queue.orders.faults }
    });
    table(&state.services, &rows.collect::<Vec<_>>(), state.faults(None))
}

fn table(services: &[(&str, String)], rows: &[Row], for_all: Faults) -> String {
    let mut page = String::from(HEAD);
    let services = services.iter().map(|(name, address)| format!("{name} at {}", escape(address)));
    // Writing to a string cannot fail.
    let _ = writeln!(page, "<p>{}. Switches for all queues: {}.</p>", listed(services), switches(for_all));
    page.push_str(
        "<table>\n<tr><th>queue<th>active<th>inactive<th>delayed<th>switches in force<th>what has happened</tr>\n",
    );
    for Row { name, report, faults } in rows {
        let QueueReport { active, inactive, delayed, .. } = report;
        let _ = writeln!(
            page,
            "<tr><td>{}<td class=\"n\">{active}<td class=\"n\">{inactive}<td class=\"n\">{delayed}<td>{}<td>{}</tr>",
            escape(name),
            switches(*faults),
            happened(report)
        );
    }
    page.push_str("</table>\n<p>Set switches with PUT or POST to /_emulator/queues/NAME/faults; numbers as JSON: ");
    page.push_str("<a href=\"/_emulator/stats\">/_emulator/stats</a>.</p>\n</body></html>\n");
    page
}

fn switches(faults: Faults) -> String {
    listed(faults.in_force().map(|(name, value)| format!("{name}={value}")))
}

/// The counts above zero, by their names in the JSON.
fn happened(report: &QueueReport) -> String {
    let all = serde_json::to_value(&report.statistics).unwrap_or_default();
    let counts = all.as_object().into_iter().flatten();
    listed(counts.filter(|(_, count)| count.as_u64() != Some(0)).map(|(name, count)| format!("{name} {count}")))
}

fn listed(parts: impl Iterator<Item = String>) -> String {
    let text = parts.collect::<Vec<_>>().join(", ");
    if text.is_empty() { "none".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::Statistics;

    #[test]
    fn the_page_shows_each_queue_its_switches_and_its_counts_and_runs_nothing() {
        let statistics = Statistics { sent: 3, throttled: 2, ..Statistics::default() };
        let report = QueueReport { active: 1, statistics, ..QueueReport::default() };
        let faults = Faults { throttle: 0.25, delay_ms: 40, ..Faults::default() };
        let rows = [Row { name: "a<script>".into(), report, faults }];
        let page = table(&[("mns", "http://127.0.0.1:1".into()), ("cmq tcp", "127.0.0.1:2".into())], &rows, Faults::default());
        for part in ["mns at http://127.0.0.1:1, cmq tcp at 127.0.0.1:2", "a&lt;script", "throttle=0.25, delay-ms=40", "sent 3, throttled 2", "for all queues: none"] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(!page.contains("<script"), "{page}");
    }
}
