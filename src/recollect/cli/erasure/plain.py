"""Receipts for pipes and files."""

from __future__ import annotations

from recollect.cli.view import json_value, one_line
from recollect.model import Receipt


class PlainErasure:
    """The part of `View` that is about erasure, as lines."""

    def erasure(self, receipt: Receipt) -> None:
        for each in receipt.found:
            what = "clear" if each.is_cleared else "remove"
            print("\t".join([what, each.table, each.agent or "-", each.id, one_line(each.excerpt)]))
        would = "would be " if receipt.is_dry_run else ""
        for what, counts in (("removed", receipt.removed), ("cleared", receipt.cleared)):
            for table, count in counts.items():
                print(f"{would}{what}\t{table}\t{count}")
        for what, sentences in (("remains", receipt.remains), ("remnant", receipt.remnants)):
            for sentence in sentences:
                print(f"{what}\t{sentence}")
        kind = "dry run" if receipt.is_dry_run else "receipt"
        print("\t".join([kind, receipt.subject, json_value(receipt.at), receipt.hash]))
