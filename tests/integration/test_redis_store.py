"""What only a real Redis shows: keys and how long they live, its lives, its scripts, its replicas, its refusals."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from pytest_captcha_qa.engine.stop import Stop
from pytest_captcha_qa.engine.store import Busy, Done, Granted, Lease, Ready, Resume, Won
from pytest_captcha_qa.errors import ConfigError, OwnerLost, StoreUnavailable
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes
from pytest_captcha_qa.model.store import StoreAddress
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.state.redis import RedisLimits, RedisStore
from pytest_captcha_qa.state.redis_link import RedisLink

KEY = "5e" * 32
TIMES = KeyTimes(lease=30, renew=10, http=20, solve=300, redelivery=90, keep=110)
FORM = Fingerprint("signup")
TOKEN = Solution({"token": "03AGdBq24" * 20}, task_id="t-1", wait=21.4)


@pytest.fixture
def store(redis_server: Any) -> Iterator[RedisStore]:
    redis_server.empty()
    store = RedisStore(RedisLink(redis_server.address))
    yield store
    store.close()


@pytest.fixture
def opened() -> Iterator[Callable[..., RedisStore]]:
    stores = []

    def opened(server: Any, address: StoreAddress | None = None, **given: Any) -> RedisStore:
        stores.append(RedisStore(RedisLink(address or server.address, **given)))
        return stores[-1]

    yield opened
    for store in stores:
        store.close()


def claim(store: RedisStore, owner: str = "a", *, fresh: bool = False) -> Any:
    return store.claim(KEY, FORM, owner, times=TIMES, fresh=fresh)


def submitted(store: RedisStore) -> Lease:
    lease: Lease = claim(store).lease
    store.intend(lease)
    store.submitted(lease, "t-1")
    return lease


def ready(store: RedisStore, age: float = 0) -> Ready:
    return store.solved(submitted(store), TOKEN, age_bound=age)


def seconds_left(server: Any) -> dict[str, int]:
    with server.client as client:
        return {name.rpartition(":")[2]: round(client.pttl(name) / 1000) for name in client.scan_iter()}


def test_a_key_is_six_keys_of_one_slot_each_with_its_own_end(redis_server: Any, store: RedisStore) -> None:
    offer = ready(store, age=10)
    store.verified(KEY, 1, "pass")
    kept = round(TIMES.keep - 10 + TIMES.tombstone)
    assert seconds_left(redis_server) == {"meta": kept, "lease": kept, "task": kept, "verify": kept, "token": 100}
    won = store.spend(offer, "c")
    assert isinstance(won, Won)
    store.done(won.lease, "ok", session="cookies")
    left = seconds_left(redis_server)
    assert left == dict.fromkeys(("meta", "lease", "task", "verify", "session"), round(TIMES.tombstone))
    with redis_server.client as client:
        assert set(client.scan_iter()) == {f"captcha:{{{KEY}}}:{part}" for part in left}


def test_every_value_is_json_and_only_one_holds_the_token(redis_server: Any, store: RedisStore) -> None:
    ready(store)
    store.verified(KEY, 1, "pass")
    with redis_server.client as client:
        values = {name.rpartition(":")[2]: client.get(name) for name in client.scan_iter()}
    assert json.loads(values["meta"])["state"] == "ready"
    assert [name for name, value in values.items() if TOKEN.text in json.dumps(json.loads(value))] == ["token"]


def test_a_token_that_the_server_dropped_is_solved_anew(redis_server: Any, store: RedisStore) -> None:
    offer = ready(store)
    with redis_server.client as client:
        client.delete(f"captcha:{{{KEY}}}:token")
    answer = claim(store, "b")
    assert isinstance(answer, Granted)
    assert (answer.lease.generation, answer.replaced) == (2, "expired")
    with pytest.raises(OwnerLost):
        store.unspend(Lease(KEY, 1, "", "", offer.times))


def test_a_key_whose_lease_was_dropped_takes_no_write_and_can_be_taken_over(
    redis_server: Any, store: RedisStore
) -> None:
    lease = submitted(store)
    with redis_server.client as client:
        client.delete(f"captcha:{{{KEY}}}:lease")
    with pytest.raises(OwnerLost):
        store.renew(lease)
    assert isinstance(claim(store, "b"), Resume)


def test_the_scripts_are_loaded_again_after_the_server_forgot_them(redis_server: Any, store: RedisStore) -> None:
    claim(store)
    with redis_server.client as client:
        client.script_flush()
    assert isinstance(claim(store, "b"), Busy)


def test_what_is_no_text_elsewhere_is_kept_as_it_is(store: RedisStore) -> None:
    odd = 'half a pair \ud800, "quotes", ключ, \x00 and \\'
    answer = store.claim(KEY, FORM, odd, times=TIMES)
    assert isinstance(answer, Granted)
    store.intend(answer.lease)
    store.submitted(answer.lease, odd)
    offer = store.solved(answer.lease, Solution({"token": odd}, cookies={"expires_at": odd}), age_bound=0)
    assert claim(store, "b").solution == offer.solution
    won = store.spend(offer, odd)
    assert isinstance(won, Won)
    store.done(won.lease, odd, session=odd)
    assert claim(store, "b") == Done(odd, odd)


def test_threads_and_a_fork_share_one_store(store: RedisStore) -> None:
    claim(store)
    answers: list[object] = []
    threads = [threading.Thread(target=lambda: answers.append(claim(store, "b"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert answers == [Busy(1.0)] * 8
    child = os.fork()
    if child == 0:
        os._exit(0 if isinstance(claim(store, "b"), Busy) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert isinstance(claim(store, "b"), Busy)


def test_a_restarted_server_is_another_epoch(start_redis: Any, opened: Callable[..., RedisStore]) -> None:
    """It kept what it knew, but nobody can say whether it kept the last spend."""
    own_redis = start_redis("--appendonly", "yes", "--appendfsync", "always")
    store = opened(own_redis)
    offer = ready(store)
    other = store.claim("00" * 32, FORM, "a", times=TIMES)
    assert isinstance(other, Granted)
    store.intend(other.lease)
    store.submitted(other.lease, "t-2")
    own_redis.kill()
    Stop().wait(0.6)
    with pytest.raises(StoreUnavailable, match="cannot be reached") as lost:
        claim(store)
    assert not lost.value.sent
    own_redis.start()
    answer = claim(store, "b")
    assert isinstance(answer, Granted)
    assert (answer.lease.generation, answer.replaced) == (2, "epoch")
    assert type(store.spend(offer, "c")).__name__ == "Lost"
    resumed = store.claim("00" * 32, FORM, "a", times=TIMES)
    assert isinstance(resumed, Resume)
    assert resumed.suspect


def test_a_write_waits_for_a_replica_and_a_replica_takes_none(
    own_redis: Any, redis_server: Any, opened: Callable[..., RedisStore]
) -> None:
    redis_server.empty()
    with own_redis.client as client, redis_server.client as replica:
        redis_server.follow(own_redis, own_redis.listen())
        try:
            client.config_resetstat()
            store, stale = opened(own_redis), opened(redis_server)
            lease = submitted(store)
            assert client.info("commandstats")["cmdstat_wait"]["calls"] == 3
            with pytest.raises(StoreUnavailable, match="is a replica and takes no writes") as refused:
                stale.renew(lease)
            assert not refused.value.sent
        finally:
            replica.replicaof("NO", "ONE")


def test_without_replicas_nothing_is_waited_for(own_redis: Any, opened: Callable[..., RedisStore]) -> None:
    submitted(opened(own_redis))
    with own_redis.client as client:
        assert "cmdstat_wait" not in client.info("commandstats")


def test_a_server_that_hangs_is_given_up_in_bounded_time(own_redis: Any, opened: Callable[..., RedisStore]) -> None:
    store = opened(own_redis, answer_within=0.2)
    claim(store)
    own_redis.freeze()
    try:
        with pytest.raises(StoreUnavailable, match="does not answer in time") as lost:
            claim(store)
    finally:
        own_redis.thaw()
    assert lost.value.sent
    assert isinstance(claim(store, "b"), Busy)


def test_a_full_server_says_so_and_keeps_what_it_has_whole(own_redis: Any, opened: Callable[..., RedisStore]) -> None:
    store = opened(own_redis)
    lease = submitted(store)
    with own_redis.client as client:
        client.config_set("maxmemory", "1")
        with pytest.raises(StoreUnavailable, match="out of memory") as full:
            store.solved(lease, TOKEN, age_bound=0)
        assert not full.value.sent
        client.config_set("maxmemory", "0")
    assert isinstance(store.solved(lease, TOKEN, age_bound=0), Ready)


def test_a_password_is_asked_for_checked_and_never_shown(own_redis: Any, opened: Callable[..., RedisStore]) -> None:
    with own_redis.client as client:
        client.config_set("requirepass", "right")
    with pytest.raises(ConfigError, match="asks for a password"):
        claim(opened(own_redis))
    wrong = StoreAddress.parse(f"unix://:wr0ng@{own_redis.socket}")
    with pytest.raises(ConfigError, match="refuses the login") as refused:
        claim(opened(own_redis, wrong))
    assert "wr0ng" not in f"{refused.value!r} {opened(own_redis, wrong)._link!r}"
    assert isinstance(claim(opened(own_redis, StoreAddress.parse(f"unix://:right@{own_redis.socket}"))), Granted)


def test_the_rights_in_the_docs_suffice_and_fewer_are_told(own_redis: Any, opened: Callable[..., RedisStore]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "stores.md").read_text()
    _, _, rights = page.partition("needs `")
    with own_redis.client as client:
        client.execute_command("ACL SETUSER qa on >pw", *rights.partition("`")[0].split())
        client.execute_command("ACL SETUSER poor on >pw ~captcha:* +eval +evalsha +info")
    store = opened(own_redis, StoreAddress.parse(f"unix://qa:pw@{own_redis.socket}"))
    won = store.spend(ready(store), "c")
    assert isinstance(won, Won)
    store.done(won.lease, "ok", session="cookies")
    with pytest.raises(ConfigError, match="lists the rights"):
        claim(opened(own_redis, StoreAddress.parse(f"unix://poor:pw@{own_redis.socket}")))


def test_limits_are_cells_that_end_by_themselves(redis_server: Any, redis_link: RedisLink) -> None:
    limits = RedisLimits(redis_link)
    limits.add("hour", 1, limit=5, seconds=3600)
    limits.raise_flag("pause", "no money", seconds=60)
    assert limits.next_allowed("submit", spacing=0.2) == 0
    assert 0 < limits.next_allowed("submit", spacing=5) <= 5
    with redis_server.client as client:
        left = {name: round(client.pttl(name) / 1000) for name in client.scan_iter()}
    assert left["captcha:limits:{counter:hour}"] == 3600
    assert left["captcha:limits:{flag:pause}"] == 60


def test_moments_of_today_keep_their_microseconds(redis_link: RedisLink) -> None:
    limits = RedisLimits(redis_link, clock=lambda: 1_795_975_200.123456)
    limits.next_allowed("submit", spacing=0)
    assert limits.next_allowed("submit", spacing=0.000_002) == pytest.approx(0.000_002, rel=0.2)


def test_tls_with_a_private_authority(
    start_redis: Any, free_port: int, tmp_path: Path, opened: Callable[..., RedisStore]
) -> None:
    authority, port = trustme.CA(), free_port
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(tmp_path / "both.pem")
    files = {name: str(tmp_path / "both.pem") for name in ("cert", "key")} | {"ca-cert": str(tmp_path / "ca.pem")}
    options = [word for name, path in files.items() for word in (f"--tls-{name}-file", path)]
    server = start_redis("--tls-port", str(port), "--tls-auth-clients", "no", *options)
    known = StoreAddress.parse(f"rediss://localhost:{port}?ca={tmp_path / 'ca.pem'}")
    assert isinstance(claim(opened(server, known)), Granted)
    with pytest.raises(StoreUnavailable, match=r"over TLS; check its certificate, and \?ca=FILE"):
        claim(opened(server, StoreAddress.parse(f"rediss://localhost:{port}")))


def test_sentinels_name_the_primary_and_after_a_failover_the_new_one(
    start_redis: Any, start_sentinel: Any, opened: Callable[..., RedisStore]
) -> None:
    primary, replica = start_redis(), start_redis()
    port, second = primary.listen(), replica.listen()
    replica.follow(primary, port)
    with replica.client as client:
        sentinel, asked = start_sentinel("main", port)
        store = opened(primary, StoreAddress.parse(f"redis+sentinel://127.0.0.1:{asked}/main"))
        lease = submitted(store)
        client.replicaof("NO", "ONE")
        late = store.claim("00" * 32, FORM, "a", times=TIMES)
        primary.kill()
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            store.renew(lease)
    sentinel.tell("main", second)
    store.renew(lease)
    with pytest.raises(OwnerLost, match="the store has nothing"):  # the new primary never heard of this one
        store.renew(late.lease)
    offer = store.solved(lease, TOKEN, age_bound=0)
    assert isinstance(store.spend(offer, "c"), Won)
    unknown = StoreAddress.parse(f"redis+sentinel://127.0.0.1:{asked}/other")
    with pytest.raises(StoreUnavailable, match="nobody told where the primary of 'other' is"):
        claim(opened(primary, unknown))
