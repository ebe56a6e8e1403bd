"""Every bound of the gateway, by name, with its reason. Times in seconds, sizes in bytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one gateway.

    Attributes:
        body: Largest body or line from a host. Arguments of a call are small; files come from upstreams.
        line: Largest line, body or event from an upstream: results carry files as base64.
        headers: Most bytes of a request's head.
        header: Longest value of one header that is read.
        connections: Most connections of hosts at once.
        sessions: Most legacy sessions at once.
        principal_sessions: Most legacy sessions of one principal.
        session_idle: How long a session without request or stream is kept.
        classes: Most sets of keys of hosts (``relay_extensions``, ``relay_experimental``) of one principal that get
            upstreams of their own.
        streams: Most streams (GET, listen) of one principal at once.
        running: Most requests of one principal in flight.
        listed: Most items of one list of one upstream; the rest is left out and said.
        listed_bytes: Most bytes of one list of one upstream over all its pages, as the largest single page.
        pages: Most pages of one list of one upstream.
        instructions: Most characters of the instructions of one upstream, which hosts hand to their models; the rest is
            left out.
        principal_subscriptions: Most subscribed URIs of all sessions and listens of one fleet of upstreams.
        subscriptions: Most subscribed URIs of one session or listen.
        queue: Most bytes that wait for one slow host on one stream.
        replay: Most bytes kept of one stream for resumption.
        replay_time: How long they are kept.
        request: How long the head, and then the body of a request may take.
        skipped: Most bytes of a body that are read though it is refused, so that its host gets to read why.
        skipping: How long that may take.
        heads: Most connections of one address that have not sent the head of a request whole. The one that waits
            longest makes room for the next, so that slow heads cannot keep others out.
        keep_alive: How long a connection without request is kept. Longer than hosts keep theirs (Node 4, aiohttp 15),
            so that none sends a request into a connection that is being closed.
        stalled: How long a host may take nothing of what is sent to it.
        watch: Time after which a request is looked after: is the host still there?
        commit: Silence after which an answer is opened as an event stream.
        heartbeat: Pause between two comments on a silent event stream.
        coalesce: How long changes are gathered before hosts are told.
        back_off: First pause before an upstream is started again; doubles up to `back_off_most`.
        back_off_most: Longest pause.
        stop: How long an upstream process gets to end by itself before it is killed.
        drain: How long requests in flight get when the gateway stops.
        method: Budget for one request of our own to an upstream (a list, a subscription).
        unread: Time without any progress in which a process leaves its input unread, after which it counts as dead. A
            server that is busy with one call for minutes must survive it.
        poll_least: Shortest poll of an upstream's lists.
        poll_most: Longest time that lists are taken for fresh because the upstream says so.
        grace: How long the names of an upstream that went down stay in the lists: a restart takes less.
        lately: How far back a listen looks for changes that its host cannot know of.
        parked: Most calls that wait for hosts to come again with answers. Each holds a call of its upstream open.
        parked_time: How long such a call waits.
        principal_parked: Most of them of one principal.
        upstream_parked: Most of them of one upstream.
        question: How long people have for an answer. Requests of the SDKs time out after 60 seconds.
        question_bytes: Largest question that is kept for people.
        questions: Most questions that wait for people.
        upstream_questions: Most of them of one upstream.
        early: How long a question outside of calls waits for a host that has not told that it is ready.
        roots: How long roots that are asked for outside of calls wait for the next call of a modern host, which is the
            only way to ask it. People look at tools before they use one; the SDKs give up after 60 seconds.
        turn: How long a call that may be asked waits for the one before it on a pipe, which carries one at a time: a
            question on a pipe names no call. Longer than a person's answer takes.
        turns: Most calls that wait so for one pipe.
        awaited: How long a task of an upstream is awaited, which is cancelled then. Tasks are for work that takes long.
        task_id: How long the id of a task is held back for the upstream's own, which is kept with it so that the task
            survives a restart. Of an upstream that takes longer it is kept when it comes.
        watching: How long one look at the questions counts as somebody who watches.
    """

    body: int = 4 * 1024 * 1024
    line: int = 16 * 1024 * 1024
    headers: int = 32 * 1024
    header: int = 8 * 1024
    connections: int = 2048
    sessions: int = 4096
    principal_sessions: int = 1024
    session_idle: float = 3600.0
    classes: int = 16
    streams: int = 2048
    running: int = 1024
    listed: int = 10_000
    listed_bytes: int = 16 * 1024 * 1024
    pages: int = 1000
    instructions: int = 64 * 1024
    subscriptions: int = 1024
    principal_subscriptions: int = 8192
    queue: int = 8 * 1024 * 1024
    replay: int = 256 * 1024
    replay_time: float = 300.0
    request: float = 30.0
    skipped: int = 16 * 1024 * 1024
    skipping: float = 5.0
    heads: int = 512
    keep_alive: float = 75.0
    stalled: float = 60.0
    watch: float = 0.25
    commit: float = 15.0
    heartbeat: float = 15.0
    coalesce: float = 0.05
    back_off: float = 0.5
    back_off_most: float = 60.0
    stop: float = 3.0
    drain: float = 2.0
    method: float = 30.0
    unread: float = 300.0
    poll_least: float = 30.0
    poll_most: float = 3600.0
    grace: float = 5.0
    lately: float = 300.0
    parked: int = 4096
    parked_time: float = 300.0
    principal_parked: int = 1024
    upstream_parked: int = 1024
    question: float = 50.0
    question_bytes: int = 1024 * 1024
    questions: int = 1000
    upstream_questions: int = 100
    early: float = 5.0
    roots: float = 55.0
    turn: float = 55.0
    turns: int = 256
    awaited: float = 3600.0
    task_id: float = 0.5
    watching: float = 5.0
