"""What the services' codes mean and what to do about each, as data.

Source of every entry: `provider-protocol.md` §4. Codes are compared whole, never by a part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pytest_captcha_qa.errors import (
    BalanceExhausted,
    CaptchaQAError,
    KeyRejected,
    ProviderBusy,
    ProviderUnavailable,
    RateLimited,
    RequestRejected,
    TaskUnknown,
    Unsolvable,
)
from pytest_captcha_qa.model.policy import Reaction


@dataclass(frozen=True, slots=True)
class Code:
    """What a code means, in words that end a sentence, and what to do; `pause`: seconds before that."""

    reaction: Reaction
    meaning: str
    pause: float | None = None


ERRORS: Mapping[Reaction, type[CaptchaQAError] | None] = MappingProxyType(
    {
        Reaction.POLL_ON: None,
        Reaction.RETRY: ProviderUnavailable,
        Reaction.REQUEUE: ProviderBusy,
        Reaction.SLOW_DOWN: RateLimited,
        Reaction.CHECK_BALANCE: BalanceExhausted,
        Reaction.OUT_OF_MONEY: BalanceExhausted,
        Reaction.DROP: TaskUnknown,
        Reaction.ONCE_MORE: Unsolvable,
        Reaction.FAIL: RequestRejected,
        Reaction.STOP: KeyRejected,
    }
)
"""The error each reaction is told by; None where the code is no error."""

_SUBMIT_CODES: Mapping[str, Code] = {
    "ERROR_WRONG_USER_KEY": Code(Reaction.STOP, "the key does not have the form of a key"),
    "ERROR_KEY_DOES_NOT_EXIST": Code(Reaction.STOP, "the key is unknown, or its account has no plan"),
    "ERROR_ZERO_BALANCE": Code(Reaction.CHECK_BALANCE, "the account has no free thread or no plan"),
    "ERROR_NO_SLOT_AVAILABLE": Code(Reaction.REQUEUE, "it has no free slot", 5.0),
    "MAX_USER_TURN": Code(Reaction.SLOW_DOWN, "there were too many submits in three seconds", 10.0),
    "ERROR_TOO_MUCH_REQUESTS": Code(Reaction.SLOW_DOWN, "there were too many requests", 5.0),
    "ERROR: 1001": Code(Reaction.SLOW_DOWN, "it blocks this account for ten minutes: no free slots", 600.0),
    "ERROR: 1002": Code(Reaction.OUT_OF_MONEY, "it blocks this account for five minutes: no balance", 300.0),
    "ERROR: 1003": Code(Reaction.SLOW_DOWN, "too many tasks wait in its queue", 30.0),
    "ERROR: 1004": Code(Reaction.STOP, "it blocks this address for ten minutes: wrong keys were sent", 600.0),
    "ERROR: 1005": Code(Reaction.SLOW_DOWN, "there were too many polls", 300.0),
    "IP_BANNED": Code(Reaction.STOP, "this address is banned after too many wrong keys", 300.0),
    "ERROR_IP_BANNED": Code(Reaction.STOP, "this address is banned after too many wrong keys", 300.0),
    "ERROR_IP_NOT_ALLOWED": Code(Reaction.STOP, "this address is not on the account's list of addresses"),
    "ERROR_PAGEURL": Code(Reaction.FAIL, "the page address is missing or refused"),
    "ERROR_GOOGLEKEY": Code(Reaction.FAIL, "the sitekey is malformed"),
    "ERROR_WRONG_GOOGLEKEY": Code(Reaction.FAIL, "the sitekey is missing"),
    "ERROR_BAD_TOKEN_OR_PAGEURL": Code(Reaction.FAIL, "the sitekey does not belong to the page"),
    "ERROR_DOMAIN_NOT_ALLOWED": Code(Reaction.FAIL, "it does not serve this page"),
    "ERROR_BAD_PARAMETERS": Code(Reaction.FAIL, "a parameter is missing or malformed"),
    "ERROR_ZERO_CAPTCHA_FILESIZE": Code(Reaction.FAIL, "the image is too small"),
    "ERROR_TOO_BIG_CAPTCHA_FILESIZE": Code(Reaction.FAIL, "the image is too large"),
    "ERROR_IMAGE_DIMENSIONS_TOO_LARGE": Code(Reaction.FAIL, "the sides of the image are too long"),
    "ERROR_WRONG_FILE_EXTENSION": Code(Reaction.FAIL, "the image has an extension it does not take"),
    "ERROR_IMAGE_TYPE_NOT_SUPPORTED": Code(Reaction.FAIL, "the image is of a type it does not take"),
    "ERROR_UPLOAD": Code(Reaction.FAIL, "the image could not be read"),
    "ERROR_INVALID_IMAGE": Code(Reaction.FAIL, "the image could not be read"),
    "ERROR_CAPTCHAIMAGE_BLOCKED": Code(Reaction.FAIL, "the image is known as unreadable"),
    "TOO_MANY_BAD_IMAGES": Code(Reaction.STOP, "the account sent too many unreadable images"),
    "ERROR_PROXY_FORMAT": Code(Reaction.FAIL, "the account's proxy is malformed"),
    "ERROR_BAD_PROXY": Code(Reaction.FAIL, "the account's proxy is marked as bad"),
    "ERROR_SERVER_ERROR": Code(Reaction.RETRY, "it has a passing fault", 10.0),
    "ERROR_INTERNAL_SERVER_ERROR": Code(Reaction.RETRY, "it has a passing fault", 10.0),
}
_RESULT_CODES: Mapping[str, Code] = {
    "CAPCHA_NOT_READY": Code(Reaction.POLL_ON, "it is still solving"),
    "ERROR_CAPTCHA_UNSOLVABLE": Code(Reaction.ONCE_MORE, "it gave up on the challenge"),
    "ERROR_WRONG_ID_FORMAT": Code(Reaction.FAIL, "the task id is malformed"),
    "ERROR_WRONG_CAPTCHA_ID": Code(Reaction.DROP, "it does not know the task"),
    "ERROR_EMPTY_ACTION": Code(Reaction.FAIL, "the action is missing"),
    "ERROR_PROXY_CONNECTION_FAILED": Code(Reaction.ONCE_MORE, "it could not reach the account's proxy"),
    "ERROR_BAD_DUPLICATES": Code(Reaction.ONCE_MORE, "its workers found no agreement"),
    # A new task with the same challenge would fail in the same way.
    "ERROR_TOKEN_EXPIRED": Code(Reaction.FAIL, "the page's challenge was used before; open the page again"),
    "ERROR_REPORT_NOT_RECORDED": Code(Reaction.FAIL, "the report came too late or is one of too many"),
    "REPORT_NOT_RECORDED": Code(Reaction.FAIL, "the report came too late or is one of too many"),
    "ERROR_DUPLICATE_REPORT": Code(Reaction.FAIL, "the task was reported before"),
    "ERROR_IP_ADDRES": Code(Reaction.FAIL, "the pingback was registered from another address"),
}
CODES: Mapping[str, Code] = MappingProxyType({**_SUBMIT_CODES, **_RESULT_CODES})
"""All codes of the protocol, with CaptchaAI's meaning where the services differ: ERROR_ZERO_BALANCE."""

# CaptchaAI says it also while all threads are busy; at 2captcha it can only mean that the money is spent, and the next
# try shall wait for a minute.
TWOCAPTCHA_CODES: Mapping[str, Code] = MappingProxyType(
    {**CODES, "ERROR_ZERO_BALANCE": Code(Reaction.OUT_OF_MONEY, "the account has no money", 60.0)}
)
CAPSKIP_CODES: Mapping[str, Code] = MappingProxyType(
    {
        **CODES,
        **dict.fromkeys(
            ("ERROR_KEY_DOES_NOT_EXIST", "ERROR_WRONG_USER_KEY"),
            Code(Reaction.STOP, "the key is not the one that is set in the app"),
        ),
    }
)
