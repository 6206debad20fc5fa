"""What every table of the file has in common, and the kinds of values in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from pytest_captcha_qa.config.variables import variable_name

Text = Annotated[str, Field(min_length=1)]
Whole = Annotated[int, Field(strict=True, ge=1)]
Number = Annotated[float, Field(strict=True)]
Yes = Annotated[bool, Field(strict=True)]
VariableName = Annotated[str, AfterValidator(variable_name)]


class Table(BaseModel):
    """A table of the file: unknown keys are refused, nothing changes after it was read.

    `later`: keys of versions to come, and what is said of them; `twins`: groups of keys, one may be given.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    later: ClassVar[Mapping[str, str]] = {}
    twins: ClassVar[tuple[tuple[str, ...], ...]] = ()

    def faults(self) -> Iterable[tuple[str, str]]:
        """Yield (key, what is wrong) for what single values do not show; an empty key means the table."""
        for group in self.twins:
            given = [key for key in group if getattr(self, key) is not None]
            if len(given) > 1:
                yield given[1], f"{' and '.join(given)} say the same thing; keep one of them"
