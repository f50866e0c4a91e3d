import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from judge.models.endpoints import FIRST_PAUSE, IN_A_ROW, LONGEST_PAUSE, SPREAD, Call, Endpoint, Endpoints


class Clock:
    """A clock that goes on only when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def pool(count: int) -> tuple[Endpoints, Clock]:
    clock = Clock()
    return Endpoints([f"http://s{number}/v1" for number in range(count)], clock), clock


def taken(endpoints: Endpoints, start: str = "a") -> Call:
    call = endpoints.take(start)
    assert call is not None
    return call


def sent(endpoint: Endpoint) -> Call:
    """A call that went to a server as any other does."""
    endpoint.in_flight += 1
    return Call(endpoint, endpoint.trouble is not None)


def fail(endpoints: Endpoints, endpoint: Endpoint, times: int = 1, **how: float) -> None:
    for _ in range(times):
        endpoints.end_failed(sent(endpoint), "status 500", **how)  # type: ignore[arg-type]


def test_prompts_that_begin_alike_go_to_one_server() -> None:
    endpoints, _ = pool(3)
    seen: dict[str, set[str]] = {}
    for number in range(300):
        start = f"turn {number % 20}"
        call = taken(endpoints, start)
        seen.setdefault(start, set()).add(call.endpoint.url)
        endpoints.end_answered(call)
    assert {len(urls) for urls in seen.values()} == {1}
    # Other starts go to other servers: of 20, each of three has some.
    assert len(set.union(*seen.values())) == 3


def test_a_server_more_moves_only_the_starts_that_go_to_it() -> None:
    def homes(count: int) -> dict[str, str]:
        endpoints, _ = pool(count)
        found = {}
        for start in map(str, range(200)):
            call = taken(endpoints, start)
            found[start] = call.endpoint.url
            endpoints.end_answered(call)
        return found

    before, after = homes(3), homes(4)
    assert all(after[start] in (before[start], "http://s3/v1") for start in before)


@given(st.integers(1, 6), st.lists(st.integers(0, 5), max_size=60))
def test_no_server_has_more_than_its_share(count: int, starts: list[int]) -> None:
    endpoints, _ = pool(count)
    for number, start in enumerate(starts, 1):
        taken(endpoints, str(start))
        most = max(math.floor(SPREAD * number / count), math.ceil(number / count))
        assert max(endpoint.in_flight for endpoint in endpoints.all) <= most
    assert sum(endpoint.in_flight for endpoint in endpoints.all) == len(starts)


def test_a_slow_server_gets_fewer_calls() -> None:
    """Sixteen calls in flight; the slow server ends one call in ten rounds, the others end all of theirs."""
    endpoints, _ = pool(3)
    slow = endpoints.all[0]
    in_flight = [taken(endpoints, str(number)) for number in range(16)]
    for number in range(1000):
        ended = [call for call in in_flight if call.endpoint is not slow or number % 10 == 0]
        for call in ended:
            in_flight.remove(call)
            endpoints.end_answered(call)
        in_flight += [taken(endpoints, f"{number} {place}") for place in range(16 - len(in_flight))]
    shares = Counter({endpoint.url: endpoint.answered for endpoint in endpoints.all})
    assert shares[slow.url] < min(endpoint.answered for endpoint in endpoints.all[1:]) / 4


def test_failures_in_a_row_set_a_server_aside_and_an_answer_between_them_does_not() -> None:
    endpoints, _ = pool(2)
    first = endpoints.all[0]
    for _ in range(5):
        fail(endpoints, first, IN_A_ROW - 1)
        endpoints.end_answered(sent(first))
    assert first.trouble is None
    fail(endpoints, first, IN_A_ROW)
    assert first.trouble == "status 500"
    assert {taken(endpoints, str(number)).endpoint.url for number in range(20)} == {"http://s1/v1"}


def test_what_will_not_pass_sets_a_server_aside_at_once() -> None:
    endpoints, _ = pool(2)
    fail(endpoints, endpoints.all[0], lasting=True)
    assert endpoints.all[0].trouble is not None


def test_a_refused_request_says_that_the_server_is_well() -> None:
    endpoints, _ = pool(2)
    first = endpoints.all[0]
    for _ in range(5):
        fail(endpoints, first, IN_A_ROW - 1)
        endpoints.end_replied(sent(first))
    assert (first.trouble, first.answered, first.in_flight) == (None, 0, 0)


def test_a_server_gets_one_call_after_pauses_that_double() -> None:
    endpoints, clock = pool(2)
    first = endpoints.all[0]
    fail(endpoints, first, IN_A_ROW)
    pauses = []
    for _ in range(9):
        began = clock.now
        while (trial := taken(endpoints)).endpoint is not first:
            endpoints.end_answered(trial)
            clock.now += 0.25
        pauses.append(clock.now - began)
        # While this call runs, it gets no other.
        assert taken(endpoints).endpoint is not first
        endpoints.end_failed(trial, "still down")
    assert pauses == [min(LONGEST_PAUSE, FIRST_PAUSE * 2**doubled) for doubled in range(9)]
    clock.now += LONGEST_PAUSE
    trial = taken(endpoints)
    assert trial.endpoint is first
    endpoints.end_answered(trial)
    assert first.trouble is None
    fail(endpoints, first, IN_A_ROW)
    clock.now += FIRST_PAUSE
    assert taken(endpoints).endpoint is first


def test_calls_that_were_in_flight_when_a_server_was_set_aside_lengthen_no_pause() -> None:
    endpoints, clock = pool(2)
    first = endpoints.all[0]
    fail(endpoints, first, 50)
    clock.now += FIRST_PAUSE
    assert taken(endpoints).endpoint is first


def test_a_call_is_tried_once_at_each_server() -> None:
    endpoints, _ = pool(3)
    tried: list[Endpoint] = []
    while (call := endpoints.take("a", tried)) is not None:
        endpoints.end_failed(call, "status 500")
        tried.append(call.endpoint)
    assert {endpoint.url for endpoint in tried} == {f"http://s{number}/v1" for number in range(3)}
    assert len(tried) == 3


def test_where_no_server_is_in_use_all_are_asked_all_the_same() -> None:
    endpoints, _ = pool(2)
    for endpoint in endpoints.all:
        fail(endpoints, endpoint, IN_A_ROW)
    first = taken(endpoints)
    second = endpoints.take("a", [first.endpoint])
    assert second is not None
    assert {first.endpoint.url, second.endpoint.url} == {"http://s0/v1", "http://s1/v1"}
    endpoints.end_answered(second)
    assert second.endpoint.trouble is None
    assert taken(endpoints).endpoint is second.endpoint


def test_a_server_that_asks_to_wait_is_not_asked_before() -> None:
    endpoints, clock = pool(2)
    first, second = endpoints.all
    fail(endpoints, first, wait=30.0)
    assert {taken(endpoints, str(number)).endpoint.url for number in range(9)} == {second.url}
    fail(endpoints, second, wait=5.0)
    assert endpoints.take("a") is None
    assert endpoints.wait(endpoints.all) == 5.0
    clock.now += 5.0
    assert taken(endpoints).endpoint is second
    # One server is out of its wait and on trial; the other one still waits.
    clock.now += 24.0
    assert endpoints.take("a", [second]) is None
    clock.now += 1.0
    late = endpoints.take("a", [second])
    assert late is not None
    assert late.endpoint is first


def test_a_call_that_was_broken_off_says_nothing_of_the_server() -> None:
    endpoints, clock = pool(2)
    first = endpoints.all[0]
    fail(endpoints, first, IN_A_ROW)
    clock.now += FIRST_PAUSE
    trial = taken(endpoints)
    assert trial.endpoint is first
    endpoints.end_unknown(trial)
    assert (first.trouble, first.in_flight) == ("status 500", 0)
    assert taken(endpoints).endpoint is first


def test_a_reply_that_was_in_flight_takes_back_no_wait() -> None:
    endpoints, clock = pool(2)
    first, second = endpoints.all
    earlier = sent(first)
    fail(endpoints, first, wait=30.0)
    endpoints.end_answered(earlier)
    assert {taken(endpoints, str(number)).endpoint.url for number in range(9)} == {second.url}
    clock.now += 30.0
    assert taken(endpoints).endpoint is first


def test_a_call_from_before_a_trial_does_not_end_it() -> None:
    endpoints, clock = pool(2)
    first, second = endpoints.all
    earlier = [sent(first) for _ in range(2)]
    fail(endpoints, first, IN_A_ROW)
    clock.now += FIRST_PAUSE
    trial = taken(endpoints)
    assert trial.endpoint is first
    endpoints.end_unknown(earlier.pop())
    assert taken(endpoints).endpoint is second
    endpoints.end_failed(earlier.pop(), "too late")
    assert first.trouble == "status 500"
    assert taken(endpoints).endpoint is second
    endpoints.end_failed(trial, "still down")
    assert first.trouble == "still down"


def test_a_trial_that_another_reply_made_needless_does_not_end_the_next_one() -> None:
    endpoints, clock = pool(2)
    first, second = endpoints.all
    earlier = sent(first)
    fail(endpoints, first, IN_A_ROW)
    clock.now += FIRST_PAUSE
    trials = [taken(endpoints)]
    endpoints.end_answered(earlier)
    fail(endpoints, first, IN_A_ROW)
    clock.now += FIRST_PAUSE
    trials.append(taken(endpoints))
    assert [trial.endpoint for trial in trials] == [first, first]
    endpoints.end_unknown(trials[0])
    assert taken(endpoints).endpoint is second


def test_a_wait_of_more_than_a_second_never_ends_early() -> None:
    endpoints, clock = pool(2)
    first, second = endpoints.all
    earlier = [sent(first) for _ in range(2)]
    fail(endpoints, first, wait=30.0)
    fail(endpoints, first, wait=1.0)
    clock.now += 29.5
    endpoints.end_answered(earlier.pop())
    assert {taken(endpoints, str(number)).endpoint.url for number in range(9)} == {second.url}
    clock.now += 0.5
    endpoints.end_answered(earlier.pop())
    assert first.trouble is None


def test_a_reply_takes_a_wait_of_a_second_back() -> None:
    endpoints, _ = pool(2)
    first = endpoints.all[0]
    earlier = sent(first)
    fail(endpoints, first, wait=1.0)
    endpoints.end_answered(earlier)
    assert first.trouble is None
