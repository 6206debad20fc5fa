"""Where the state of a run is kept: in a file of this machine, or on a Redis that several share."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pytest_captcha_qa.engine.events import Emit
from pytest_captcha_qa.engine.ports import Clock
from pytest_captcha_qa.engine.stop import Stop
from pytest_captcha_qa.engine.store import Limits, StateStore
from pytest_captcha_qa.errors import ConfigError, StoreUnavailable
from pytest_captcha_qa.model.policy import OnStoreLoss
from pytest_captcha_qa.model.store import StoreAddress
from pytest_captcha_qa.state.apart import OwnKeys
from pytest_captcha_qa.state.fallback import FallbackStore
from pytest_captcha_qa.state.fallback_limits import FallbackLimits
from pytest_captcha_qa.state.listing import KeyView
from pytest_captcha_qa.state.memory import MemoryLimits
from pytest_captcha_qa.state.outage import Outage
from pytest_captcha_qa.state.redis import RedisLimits, RedisStore
from pytest_captcha_qa.state.redis_link import RedisLink
from pytest_captcha_qa.state.sqlite import SqliteLimits, SqliteStore

StorePlace = Path | StoreAddress


@dataclass
class Stores:
    """Both ports on one place."""

    keys: StateStore
    limits: Limits

    def close(self) -> None:
        """Give back connections and files."""
        self.keys.close()
        self.limits.close()


@dataclass(frozen=True, slots=True)
class Loss:
    """What a run does when its shared store is lost; `processes` are those of this run, which share its budget."""

    policy: OnStoreLoss = OnStoreLoss.CONTINUE
    processes: int = 1


def open_stores(place: StorePlace, loss: Loss, *, clock: Clock, stop: Stop, emit: Emit) -> Stores:
    """Return the stores at a place; a shared one is looked for at once, so that its loss is known from the start.

    Raises:
        ConfigError: there can be none, or the shared one refuses us; the message says why.
        StoreUnavailable: the file cannot be used, or the shared store cannot be reached and the run is to stop then.
    """
    if isinstance(place, Path):
        return Stores(SqliteStore(place), SqliteLimits(place))
    link = RedisLink(place)
    limits = RedisLimits(link)
    outage = Outage(str(place), lambda: limits.raise_flag("reachable", "yes", seconds=60.0), clock, stop, emit)
    own = OwnKeys(clock=clock.monotonic)
    alone = MemoryLimits(clock=clock.monotonic)
    stores = Stores(
        FallbackStore(RedisStore(link), own, outage, loss.policy, emit),
        FallbackLimits(limits, alone, outage, loss.policy, processes=loss.processes),
    )
    try:
        outage.look()
    except StoreUnavailable:
        if loss.policy is OnStoreLoss.STOP:
            stores.close()
            raise
    return stores


def keys_in(place: StorePlace) -> list[KeyView]:
    """Return what may be seen of the keys at a place; nothing is changed, and a file that is not there is not made.

    Raises:
        StoreUnavailable, ConfigError: it cannot be read.
    """
    if isinstance(place, Path) and not place.exists():
        return []
    store = SqliteStore(place) if isinstance(place, Path) else RedisStore(RedisLink(place))
    with closing(store):
        return sorted(store.views(), key=lambda one: (one.state, one.forgotten_in))


def unusable_store(place: StorePlace) -> list[str]:
    """Return in sentences what keeps a place from being used; a shared one is not touched."""
    try:
        if isinstance(place, Path):
            SqliteStore(place).close()
        else:
            RedisLink(place).close()
    except (StoreUnavailable, ConfigError) as error:
        return [error.message]
    return []
