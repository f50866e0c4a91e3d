"""A calibration of a judge that has a certificate already: does the certified agreement hold on these topics?"""

from collections.abc import Iterable, Sequence

import msgspec

from judge.ask.results import Labels
from judge.ask.verdict import PARSER_VERSION
from judge.calibrate.certificate import MODEL_RETURNED, PARAMETERS, Certificate
from judge.calibrate.certified import Certified, topic_digest
from judge.calibrate.findings import Calibration, Carried, LabeledSupport
from judge.calibrate.panel import Panel
from judge.calibrate.second_year import carry, chosen_on_same_grades
from judge.calibrate.support import Met, met_in_pool, support
from judge.errors import UsageError
from judge.gold.seal import Entry, read_seal, seal_of
from judge.io.ids import cluster_of, natural_key, topic_of
from judge.io.text import count, examples, printable
from judge.jobs.calibration.certifying import made_by
from judge.jobs.calibration.inputs import CalibrationInputs, CalibrationPlan
from judge.jobs.calibration.look import LookRecord


def check_second_year(inputs: CalibrationInputs, columns: Sequence[Labels]) -> None:
    """Refuse labels of another judge than the certified one, and gold of its topics alone, before any seal is opened.

    A UsageError that says all that differs.
    """
    certificate = inputs.certificate
    if certificate is None:
        return
    path = inputs.plan.certificate
    entries = {entry.criterion: entry for entry in certificate.certified}
    graded = {row.criterion for row in inputs.gold.rows}
    problems: list[str] = []
    seen: set[str] = set()
    for labels in columns:
        criterion = _criterion_of(inputs, labels, graded)
        if criterion not in graded:
            continue
        entry = entries.get(criterion)
        if entry is None:
            problems.append(
                f"{criterion} is not certified (it has {', '.join(sorted(entries))}; --criterion names one)"
            )
            continue
        if criterion in seen:
            problems.append(f"{criterion} has more than one judge: give the judgments of {entry.judge} alone")
        seen.add(criterion)
        problems += [f"{criterion}: {text}" for text in _differences(inputs.plan, entry, labels)]
    if inputs.plan.cluster != _cluster(certificate):
        problems.append(f"it is over {_cluster(certificate)}s (--cluster {_cluster(certificate)})")
    if problems:
        listed = "; ".join(dict.fromkeys(problems))
        raise UsageError(f"{path}: certifies another judge than these judgments are of: {printable(listed)}")
    _check_topics(inputs, certificate)


def _criterion_of(inputs: CalibrationInputs, labels: Labels, graded: set[str]) -> str:
    if labels.prompt is not None:
        return labels.prompt.partition("/")[0]
    return inputs.only or next(iter(sorted(graded)), "")


def _differences(plan: CalibrationPlan, entry: Certified, labels: Labels) -> list[str]:
    """What is otherwise than certified; an option counts only where both say it, and another address never."""
    made = made_by(plan, labels.source, None)
    pairs: list[tuple[str, object, object]] = [
        ("judge", entry.judge, labels.judge),
        ("prompt", entry.prompt, labels.prompt),
        ("prompt digest", entry.prompt_digest, labels.prompt_digest),
        ("parser", entry.parser, made.get("parser", PARSER_VERSION)),
        ("renderer", entry.renderer, made.get("renderer", entry.renderer)),
        (MODEL_RETURNED, entry.models_returned, labels.models_returned),
    ]
    options = made.get("options")
    if entry.parameters is not None and options is not None:
        compared = [name for name in PARAMETERS if name != "base_url"]
        pairs += [(name, entry.parameters.get(name), options.get(name)) for name in compared]
    return [f"{item} {_said(before)} certified, {_said(here)} here" for item, before, here in pairs if before != here]


def _said(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def _cluster(certificate: Certificate) -> str:
    clusters = {str(entry.resampling.get("cluster", "topic")) for entry in certificate.certified}
    return min(clusters, default="topic")


def _check_topics(inputs: CalibrationInputs, certificate: Certificate) -> None:
    """Refuse gold all of whose topics are certified ones."""
    plan = inputs.plan
    topics = {cluster_of(topic_of(row.turn_id), plan.cluster) for row in inputs.gold.rows}
    seal = seal_of(plan.test, plan.seal)
    if seal is not None:
        topics = {cluster_of(topic, plan.cluster) for topic in read_seal(seal).test.topics}
    known = {digest for entry in certificate.certified for digest in entry.topic_digests}
    if topics and all(topic_digest(topic) in known for topic in topics):
        raise UsageError(
            f"{plan.certificate}: every topic of the gold is one that it was made on "
            f"({examples(sorted(topics, key=natural_key))}): expected gold of other topics, which have other ids"
        )


def with_second_year(
    inputs: CalibrationInputs,
    calibration: Calibration,
    panels: Sequence[Panel],
    entries: tuple[Certified, ...],
    record: LookRecord | None,
) -> tuple[Calibration, tuple[Certified, ...]]:
    """The findings and the entries of the new certificate with what became of an earlier one's agreement, if any.

    `record`: the look at sealed grades, if one was taken.
    """
    certificate = inputs.certificate
    if certificate is None:
        return calibration, entries
    entries = _carried(inputs, certificate, panels, entries)
    carried = tuple(entry.carried for entry in entries if entry.carried is not None)
    warnings = second_year_warnings(certificate, carried, record.opening.entries if record else ())
    found = msgspec.structs.replace(calibration, carried=carried, warnings=(*calibration.warnings, *warnings))
    return found, entries


def _carried(
    inputs: CalibrationInputs, certificate: Certificate, panels: Sequence[Panel], entries: Sequence[Certified]
) -> tuple[Certified, ...]:
    """The entries, each with what became of the earlier certificate's agreement."""
    before = {entry.criterion: entry for entry in certificate.certified}
    by_criterion = {panel.criterion: panel for panel in panels}
    found: list[Certified] = []
    for entry in entries:
        panel = by_criterion[entry.criterion]
        column = next(
            column for column in panel.columns if (column.judge, column.prompt) == (entry.judge, entry.prompt)
        )
        earlier = before[entry.criterion]
        carried = carry(
            panel=panel,
            column=column,
            split=entry.split,
            entry=earlier,
            certificate=certificate,
            support=_support(earlier, column.origin),
            margin=inputs.plan.carrying_margin,
            options=inputs.options,
        )
        found.append(msgspec.structs.replace(entry, carried=carried))
    return tuple(found)


def _support(entry: Certified, labels: Labels | None) -> LabeledSupport:
    """Whether all that the judge graded is like what was labeled, gold or not."""
    if labels is None:
        return support(entry.labeled, ())
    grades = {label.response_id: label.grade for label in labels.labels if label.sample == 0}
    if labels.pool is not None:
        return support(entry.labeled, met_in_pool(labels.pool, grades))
    met = [Met(topic_of(label.turn_id), {}, label.grade) for label in labels.labels if label.sample == 0]
    return support(entry.labeled, met)


def second_year_warnings(
    certificate: Certificate, carried: Iterable[Carried], ledger: Sequence[Entry] = ()
) -> tuple[str, ...]:
    """What limits the comparison with the earlier certificate; `ledger`: the looks at sealed grades, if any were."""
    warnings: list[str] = []
    looks = [certificate.digest in entry.margins for entry in ledger]
    if True in looks and (before := looks.index(True)):
        questions = count(before, "other question")
        warnings.append(f"the margin was set after the sealed grades had been opened for {questions}")
    entries = {entry.criterion: entry for entry in certificate.certified}
    for row in carried:
        entry = entries.pop(row.criterion)
        if row.shared:
            warnings.append(
                f"{row.criterion}: {count(len(row.shared), 'topic')} with an id of a certified topic "
                f"({examples(row.shared)}) left out of the comparison with the certificate"
            )
        if not entry.topic_digests:
            warnings.append(
                f"{row.criterion}: the certificate is from before topics were kept in it: whether these topics are "
                "others is not checked"
            )
        if entry.parameters is None:
            warnings.append(f"{row.criterion}: the certificate does not say with which options its judge was asked")
        if flattered := chosen_on_same_grades(entry):
            warnings.append(f"{row.criterion}: {flattered}, and less agreement is to be expected")
    warnings += [f"{criterion}: certified, but not compared here" for criterion in entries]
    return tuple(warnings)
