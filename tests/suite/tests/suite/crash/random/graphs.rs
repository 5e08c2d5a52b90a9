//! Random graphs as TOML from a seed.

use super::nodes::TURNS;

/// Maximum number of nodes of the root graph.
const NODES: u64 = 30;

/// Maximum number of nodes of a subgraph.
const NESTED_NODES: u64 = 4;

/// The line of a node whose subgraph has a state of its own.
const OWN_STATE: &str = "state = \"own\"";

/// A pseudorandom sequence (SplitMix64).
pub(in crate::crash) struct Dice(u64);

impl Dice {
    /// Creates the sequence of a seed.
    pub(in crate::crash) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `limit`.
    pub(in crate::crash) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// Returns true with a probability of `percent`.
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A node and its settings.
struct Node {
    /// Lines of its table, besides the plugin.
    lines: Vec<String>,
    /// Entries of its configuration.
    config: Vec<String>,
    /// The number of the subgraph that runs as this node.
    graph: Option<usize>,
    /// Nodes to which it sends.
    sends: Vec<String>,
}

/// Returns the graphs of a seed: `main` and its subgraphs.
pub(super) fn graphs(seed: u64) -> String {
    let mut dice = Dice::new(seed.wrapping_mul(7_919).wrapping_add(1));
    let count = 5 + dice.below(NODES - 4);
    let mut nested = 0;
    let mut nodes: Vec<Node> =
        (0..count).map(|number| node(&mut dice, number, &mut nested)).collect();
    let mut text = head("main", "n0");
    text += &ways(&mut dice, &mut nodes);
    for (number, node) in nodes.iter().enumerate() {
        text += &table("main", &format!("n{number}"), node);
    }
    if nodes.iter().any(|node| node.lines.iter().any(|line| line.starts_with("on_error"))) {
        text += &table("main", "rescue", &acting("rescue"));
    }
    for number in 0..nested {
        text += &line_of(&mut dice, number);
    }
    text
}

fn acting(name: &str) -> Node {
    let config = vec![format!("name = \"{name}\"")];
    Node { lines: Vec::new(), config, graph: None, sends: Vec::new() }
}

fn node(dice: &mut Dice, number: u64, nested: &mut usize) -> Node {
    let mut node = acting(&format!("n{number}"));
    // The first node of every graph is a plain node.
    if number > 0 && dice.chance(12) {
        node.graph = Some(*nested);
        *nested += 1;
        // A subgraph with a state of its own runs once in a superstep, so it is not the target of
        // sends.
        let states = ["", "state = \"none\"", OWN_STATE];
        node.lines.push(states[dice.below(3) as usize].to_owned());
    } else {
        character(dice, &mut node, true);
    }
    if number > 0 && dice.chance(10) {
        node.lines.push("defer = true".to_owned());
    }
    node
}

/// Adds an interrupt or failures to a node at random.
fn character(dice: &mut Dice, node: &mut Node, may_be_rescued: bool) {
    if dice.chance(15) {
        node.config.push("asks = true".to_owned());
    }
    if dice.chance(15) {
        node.config.push("fails = \"once\"".to_owned());
        node.lines.push("retry = { attempts = 2, initial = \"1ms\", jitter = false }".to_owned());
    } else if may_be_rescued && dice.chance(12) {
        node.config.push("fails = \"always\"".to_owned());
        node.lines.push("on_error = \"rescue\"".to_owned());
    }
}

fn head(graph: &str, entry: &str) -> String {
    format!(
        "[graphs.{graph}]\nentry = \"{entry}\"\nrecursion_limit = 400\n\
         [graphs.{graph}.channels.trail]\nreducer = \"append\"\n"
    ) + &["total", "turns"].map(|name| counter(graph, name)).concat()
}

/// Sums are not shared with subgraphs. The result of a subgraph would be added to the value that it
/// started with.
fn counter(graph: &str, name: &str) -> String {
    format!("[graphs.{graph}.channels.{name}]\nreducer = \"sum\"\ndefault = 0\n")
}

/// Returns edges, branches and sends by which every node is reached.
fn ways(dice: &mut Dice, nodes: &mut [Node]) -> String {
    let mut text = String::new();
    for number in 1..nodes.len() {
        let (from, other) =
            (dice.below(number as u64) as usize, dice.below(number as u64) as usize);
        let is_sent_to = nodes[number].lines.iter().all(|line| line != OWN_STATE);
        match dice.below(10) {
            0 | 1 if from != other => text += &edge(&format!("\"n{from}\", \"n{other}\""), number),
            2 | 3 => {
                let when = format!("state.total % 2 == {}", dice.below(2));
                text += &branch(&format!("b{number}"), from, &when, number);
            }
            4 | 5 if is_sent_to && nodes[from].graph.is_none() => {
                let sends = 0..=dice.below(3);
                nodes[from].sends.extend(sends.map(|_| format!("\"n{number}\"")));
            }
            _ => text += &edge(&format!("\"n{from}\""), number),
        }
        if dice.chance(12) {
            let when = format!("state.turns < {TURNS}");
            text += &branch(&format!("again{number}"), number, &when, other);
        }
    }
    text
}

fn edge(from: &str, to: usize) -> String {
    format!("[[graphs.main.edges]]\nfrom = [{from}]\nto = \"n{to}\"\n")
}

fn branch(name: &str, from: usize, when: &str, to: usize) -> String {
    format!(
        "[[graphs.main.branches]]\nname = \"{name}\"\nfrom = \"n{from}\"\n\
         cases = [{{ when = \"{when}\", to = \"n{to}\" }}, {{ to = \"END\" }}]\n"
    )
}

fn table(graph: &str, name: &str, node: &Node) -> String {
    let mut lines = vec![format!("[graphs.{graph}.nodes.{name}]")];
    match node.graph {
        Some(nested) => lines.push(format!("graph = \"inner{nested}\"")),
        None => {
            let sends = node.sends.join(", ");
            let config = node.config.join(", ");
            lines.push("plugin = \"p\"\nnode = \"act\"".to_owned());
            lines.push(format!("with = {{ {config}, sends = [{sends}] }}"));
            lines.push(format!("goto = [{sends}]"));
        }
    }
    lines.extend(node.lines.iter().cloned());
    lines.join("\n") + "\n"
}

/// Returns a subgraph whose nodes run one after the other.
fn line_of(dice: &mut Dice, number: usize) -> String {
    let graph = format!("inner{number}");
    let mut text =
        head(&graph, "m0").replace(".total]", ".own_total]").replace(".turns]", ".own_turns]");
    let count = 1 + dice.below(NESTED_NODES);
    for place in 0..count {
        let name = format!("m{place}");
        let mut node = acting(&format!("{graph}-{name}"));
        node.config.push("nested = true".to_owned());
        character(dice, &mut node, false);
        text += &table(&graph, &name, &node);
        if place > 0 {
            text += &format!(
                "[[graphs.{graph}.edges]]\nfrom = \"m{}\"\nto = \"m{place}\"\n",
                place - 1
            );
        }
    }
    text
}
