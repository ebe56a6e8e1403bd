"""Verdicts and findings as tables: what each means, and how much it matters."""

from __future__ import annotations

from dataclasses import dataclass

from troth.audit.model import Severity, Verdict


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a verdict or a kind of finding says.

    Attributes:
        severity: The usual severity; a probe may give another with a reason.
        text: One sentence for people.
        source: Where it is laid down: the id of a norm of the register without its revision, or words where the
            register has none; empty where nothing but good sense says so.
    """

    severity: Severity
    text: str
    source: str = ""


VERDICTS: dict[Verdict, Meaning] = {
    Verdict.KEPT: Meaning(Severity.NONE, "Declared and delivered."),
    Verdict.ABSENT: Meaning(Severity.NONE, "Neither declared nor served."),
    Verdict.NOT_OBSERVABLE: Meaning(Severity.NONE, "Nothing on the wire can decide it; the hint says what would."),
    Verdict.EMPTY: Meaning(Severity.WARNING, "Declared and served, with nothing in it."),
    Verdict.WRONG_CODE: Meaning(Severity.WARNING, "Refused, but not with the code that this revision uses."),
    Verdict.UNDECLARED: Meaning(Severity.WARNING, "Served or sent without having been declared."),
    Verdict.LEAKED: Meaning(Severity.WARNING, "A member that the revision in force does not define."),
    Verdict.PARTIAL: Meaning(Severity.ERROR, "Declared, and a part of it is refused."),
    Verdict.MALFORMED: Meaning(Severity.ERROR, "Declared with a value of the wrong type, which counts as absent."),
    Verdict.UNGATED: Meaning(Severity.ERROR, "Asks for, or sends, what the client did not opt into."),
    Verdict.BROKEN: Meaning(Severity.ERROR, "Declared and not delivered."),
}
"""From the least to the most serious: where several apply to a row, the last one in this order stands."""

RANK = {verdict: rank for rank, verdict in enumerate(VERDICTS)}
SEVERITY_RANK = {severity: rank for rank, severity in enumerate(Severity)}

FINDINGS: dict[str, Meaning] = {
    "audit.fault": Meaning(Severity.ERROR, "The audit itself failed; what it would have judged is not judged."),
    "cache.public-varies": Meaning(
        Severity.ERROR,
        "A list that depends on the client's capabilities is offered to shared caches.",
        "N-CACHE-PRIVATE",
    ),
    "cache.varies-by-connection": Meaning(
        Severity.ERROR, "Two connections with the same declaration see two lists.", "N-LIST-ANSWER-TOOLS"
    ),
    "change-tool.failed": Meaning(
        Severity.NOTE, "The tool that `--change-tool` names did not run, so it can have changed nothing."
    ),
    "declaration.deprecated": Meaning(
        Severity.NOTE, "A capability in use is deprecated in this revision.", "N-DEPRECATED"
    ),
    "declaration.eras-differ": Meaning(
        Severity.NOTE, "`initialize` and `server/discover` declare different things.", "N-DUAL-SERVER"
    ),
    "declaration.unstable": Meaning(
        Severity.WARNING, "The same opening is answered with two declarations.", "N-STATELESS"
    ),
    "declaration.malformed": Meaning(
        Severity.ERROR, "The capability object is none, or cannot be read.", "N-INIT-SERVER-CAPS"
    ),
    "declaration.unknown": Meaning(
        Severity.NOTE, "A member that no revision defines; legal, and understood by nobody."
    ),
    "declaration.client-refused": Meaning(
        Severity.ERROR, "A client is refused for a capability that the server does not know; they are an open set."
    ),
    "declaration.transports-differ": Meaning(Severity.WARNING, "One server declares different things per transport."),
    "era.discover-malformed": Meaning(
        Severity.WARNING, "The discover result lacks members that the schema requires.", "N-DISCOVER"
    ),
    "era.discover-silent": Meaning(Severity.WARNING, "A request of the modern era is never answered.", "N-ERA-PROBE"),
    "input-required.wrong-method": Meaning(
        Severity.ERROR, "Input is asked for in answer to a method that cannot carry the answer.", "N-MRTR-METHODS"
    ),
    "listen.acknowledged-absent": Meaning(
        Severity.WARNING, "Updates are acknowledged for a resource that is none.", "N-SUBSCRIBE-2026"
    ),
    "listen.no-acknowledgement": Meaning(
        Severity.ERROR, "A listen stream does not begin with its acknowledgement.", "N-LISTEN-ACK"
    ),
    "listen.untagged": Meaning(
        Severity.ERROR, "A message of a listen stream lacks its subscription id.", "N-LISTEN-ID"
    ),
    "lists.cursor-repeats": Meaning(Severity.ERROR, "A list's pages never end."),
    "logging.bad-level-accepted": Meaning(
        Severity.NOTE, "A log level that does not exist is accepted.", "N-LOG-BADLEVEL"
    ),
    "method.removed-served": Meaning(
        Severity.WARNING, "A method that this revision removed is still answered.", "N-MNF-GATED"
    ),
    "negotiation.unknown-version": Meaning(
        Severity.WARNING, "A protocol version that does not exist is accepted.", "N-32022"
    ),
    "negotiation.other-version": Meaning(
        Severity.NOTE, "Another revision than the one asked for is in force.", "N-VERSION-COUNTER"
    ),
    "negotiation.malformed": Meaning(
        Severity.ERROR, "The answer to the opening request is not what it must be.", "N-INIT-SERVER-CAPS"
    ),
    "modern.meta-not-required": Meaning(
        Severity.WARNING, "A request without its client capabilities is served.", "N-META-REQUIRED"
    ),
    "modern.required-capabilities": Meaning(
        Severity.ERROR, "A refusal for a missing client capability does not say which.", "N-32021"
    ),
    "modern.session-id": Meaning(Severity.WARNING, "A stateless answer carries a session id.", "N-STATELESS"),
    "modern.header-unchecked": Meaning(Severity.WARNING, "Headers that contradict the body are accepted."),
    "modern.infers": Meaning(Severity.ERROR, "Client capabilities of one request are used for another.", "N-NO-INFER"),
    "http.session-ignored": Meaning(Severity.WARNING, "A session that does not exist is served."),
    "http.session-not-ended": Meaning(Severity.WARNING, "A session that was ended is served."),
    "http.status": Meaning(Severity.WARNING, "The HTTP status is not the one that goes with the error.", "N-MNF-404"),
    "process.lives-on": Meaning(Severity.WARNING, "The server does not end when its input does."),
    "process.died": Meaning(Severity.ERROR, "The server ended in the middle of the conversation."),
    "protocol.early": Meaning(Severity.WARNING, "The server speaks before the handshake is over."),
    "protocol.flood": Meaning(Severity.ERROR, "More comes than anybody can read."),
    "protocol.hangs": Meaning(Severity.ERROR, "A request is never answered."),
    "protocol.junk": Meaning(
        Severity.ERROR, "Something that is no message stands between the messages.", "JSON-RPC 2.0, section 3"
    ),
    "protocol.notification-answered": Meaning(
        Severity.ERROR, "A notification is answered.", "JSON-RPC 2.0, section 4.1"
    ),
    "protocol.null-id": Meaning(Severity.WARNING, "A response does not name its request.", "JSON-RPC 2.0, section 5"),
    "protocol.ping": Meaning(Severity.ERROR, "`ping` is not answered with an empty result."),
    "protocol.request-in-modern": Meaning(
        Severity.ERROR, "The server sends a request in an era that has none.", "N-NO-S2C"
    ),
    "protocol.stray": Meaning(
        Severity.WARNING, "A response answers nothing that was asked.", "JSON-RPC 2.0, section 5"
    ),
    "protocol.unknown-method": Meaning(
        Severity.WARNING, "An unknown method is not refused with -32601.", "N-MNF-GATED"
    ),
    "protocol.unknown-request": Meaning(Severity.WARNING, "The client is asked for something that does not exist."),
    "resources.not-found-code": Meaning(
        Severity.NOTE, "A resource that does not exist is refused with another code.", "N-RES-32002"
    ),
    "resources.not-watchable": Meaning(Severity.NOTE, "Some resources take subscriptions, and others do not."),
    "result.leaked-member": Meaning(Severity.NOTE, "Results carry members of another revision."),
    "result.members": Meaning(Severity.WARNING, "A result lacks members that its schema requires."),
    "touch.failed": Meaning(Severity.WARNING, "The command that was to change something did not work."),
    "tasks.forbidden-accepted": Meaning(
        Severity.NOTE, "A tool that forbids tasks is called as one, and not refused.", "N-TASKS-FORBIDDEN"
    ),
    "tools.slow": Meaning(Severity.NOTE, "A tool takes longer than the audit waits for one method."),
    "tools.unknown-accepted": Meaning(Severity.WARNING, "A tool that does not exist seems to run."),
    "tasks.not-isolated": Meaning(Severity.ERROR, "One session sees another session's tasks.", "N-TASKS-BIND"),
}
"""Findings that belong to no single row, by their stable code."""
