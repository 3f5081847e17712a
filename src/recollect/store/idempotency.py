"""Idempotency keys as rows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from recollect.ports.idempotency import CLAIM, Claim, KeptAnswer
from recollect.store.engine import Unit
from recollect.store.rows import moment
from recollect.store.units import Units, take_key

ROW_BYTES = 1000
"""What a row without an answer counts for, indexes included."""

NO_HOLDER = "-"
"""Stands for the holder of no row."""


class IdempotencyRows(Units):
    """`ports.IdempotencyStore`."""

    def find_answer(self, claim: Claim) -> KeptAnswer | None:
        row = self._read(claim.tenant, lambda unit: unit.one("find_answer", **_whose(claim), now=claim.at))
        if row is None:
            return None
        at, request_hash, status, content_type, body = row
        return KeptAnswer(at=moment(at), request_hash=request_hash, status=status, content_type=content_type, body=body)

    def keep_answer(self, claim: Claim, answer: KeptAnswer) -> None:
        values = {
            "holder": claim.holder,
            "request_hash": answer.request_hash,
            "status": answer.status,
            "content_type": answer.content_type,
            "answer": answer.body,
            "size": ROW_BYTES + len(answer.body or b""),
        }

        def keep(unit: Unit) -> None:
            if claim.is_written or take_key(unit, claim):
                unit.run("keep_answer", **_whose(claim), **values)

        self._write(claim.tenant, keep)

    def renew_key(self, claim: Claim, *, at: datetime, expires_at: datetime) -> None:
        values = {"holder": claim.holder, "at": at, "expires_at": expires_at}
        self._write(claim.tenant, lambda unit: unit.run("renew_key", **_whose(claim), **values))

    def prune_answers(self, tenant: str, *, created_until: datetime, max_bytes: int) -> int:
        def prune(unit: Unit) -> int:
            count = unit.run("drop_expired_answers", tenant=tenant, created_until=created_until)
            excess = unit.one("newest_excess_answer", tenant=tenant, max_bytes=max_bytes)
            return count + (unit.run("drop_old_answers", tenant=tenant, at=excess[0]) if excess is not None else 0)

        return self._write(tenant, prune)

    def erase_answers(self, tenant: str, *, with_keys: bool = False) -> int:
        statement = "erase_idempotency_keys" if with_keys else "erase_answers"
        claim = CLAIM.get()
        # The request that erases has not made its answer yet: it is the receipt, which quotes nothing.
        holder = NO_HOLDER if claim is None or claim.is_over else claim.holder
        values = {"size": ROW_BYTES, "but_holder": holder}
        return self._write(tenant, lambda unit: unit.run(statement, tenant=tenant, **values))


def _whose(claim: Claim) -> dict[str, Any]:
    return {"tenant": claim.tenant, "key_hash": claim.key_hash}
