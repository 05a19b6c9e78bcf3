"""Reads what a run has told its trackers with their own libraries, and compares it with metrics.jsonl. usage: trackers_oracle.py RUN_FOLDER"""

import glob
import json
import math
import os
import sys

run = sys.argv[1]
rows = [json.loads(line) for line in open(os.path.join(run, "metrics.jsonl"))]


def expected():
    """(name, step) -> number, as trackers name them."""
    out = {}

    def add_eval(prefix, numbers, step):
        for name, value in numbers.items():
            if isinstance(value, dict):
                add_eval(prefix + name + "/", value, step)
            elif value is not None:
                out[prefix + name, step] = value

    for row in rows:
        step = row["step"]
        if "eval" in row:
            add_eval("eval/", row["eval"], step)
        else:
            out.update({(name, step): value for name, value in row.items() if name not in ("step", "not_finite") and value is not None})
    return out


def compare(who, got, wanted, tolerance):
    assert set(got) == set(wanted), (who, set(got) ^ set(wanted))
    for key, value in wanted.items():
        assert math.isclose(got[key], value, rel_tol=tolerance, abs_tol=1e-30), (who, key, got[key], value)


def once(who, points):
    """As a table; a point twice is an error."""
    out = {}
    for key, value in points:
        assert key not in out, (who, key)
        out[key] = value
    return out


def text_of(step):
    return "step %d\n# of *many*" % step


def read_tensorboard():
    from tensorboard.backend.event_processing import event_accumulator
    from tensorboard.plugins.hparams import metadata
    from tensorboard.util import tensor_util

    folder = os.path.join(run, "tb_logs")
    events = event_accumulator.EventAccumulator(folder, size_guidance={"scalars": 0, "histograms": 0, "tensors": 0})
    events.Reload()
    tags = events.Tags()
    scalars = once("tensorboard", (((tag, e.step), e.value) for tag in tags["scalars"] for e in events.Scalars(tag)))
    compare("tensorboard", scalars, expected(), 1e-6)  # theirs are fp32
    texts = [(e.step, tensor_util.make_ndarray(e.tensor_proto).item().decode()) for e in events.Tensors("samples/1")]
    assert texts == [(row["step"], "    " + text_of(row["step"]).replace("\n", "\n    ")) for row in rows if "eval" not in row], texts
    assert events.SummaryMetadata("samples/1").plugin_data.plugin_name == "text"
    histograms = once("tensorboard", (((tag, e.step), e.histogram_value) for tag in tags["histograms"] for e in events.Histograms(tag)))
    weights = {step for tag, step in histograms if tag == "weights/norm.weight"}
    assert weights == {row["step"] for row in rows if "eval" not in row and row["step"] % 2 == 0}, weights
    assert ("gradients/layers.0.attention.q_proj.weight", 2) in histograms, list(histograms)[:5]
    for value in histograms.values():
        assert value.num == sum(value.bucket) > 0 and value.min <= value.max and len(value.bucket) == len(value.bucket_limit)
    start = metadata.parse_session_start_info_plugin_data(
        events.SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content)
    assert start.hparams["train.batch_size"].number_value > 0 and start.hparams["optimizer.name"].string_value == "adamw"
    end = metadata.parse_session_end_info_plugin_data(events.SummaryMetadata(metadata.SESSION_END_INFO_TAG).plugin_data.content)
    assert end.status == 1, end
    return len(scalars)


def read_wandb():
    import wandb

    wandb._assert_is_internal_process = True  # their reader wants it
    from wandb.proto import wandb_internal_pb2
    from wandb.sdk.internal import datastore

    files = glob.glob(os.path.join(run, "wandb", "offline-run-*", "run-*.wandb"))
    assert len(files) == 1, files
    store = datastore.DataStore()
    store.open_for_scan(files[0])
    kinds, points, texts, histograms, numbers = [], [], {}, {}, []
    while (data := store.scan_data()) is not None:
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        numbers.append(record.num)
        kinds.append(record.WhichOneof("record_type"))
        if kinds[-1] == "run":
            assert record.run.project == "kempnerforge" and record.run.run_id in files[0] and record.run.start_time.seconds > 1e9
            config = {item.key: json.loads(item.value_json) for item in record.run.config.update}
            assert config["optimizer"]["name"] == "adamw", config
        elif kinds[-1] == "history":
            values = {item.key: json.loads(item.value_json) for item in record.history.item}
            step = record.history.step.num
            assert values["_step"] == step and "_runtime" in values and "_timestamp" in values
            for name, value in values.items():
                if isinstance(value, dict):
                    assert value["_type"] == "histogram" and len(value["bins"]) == len(value["values"]) + 1 <= 513
                    histograms[name, step] = value
                elif isinstance(value, str):
                    texts[step] = value
                elif not name.startswith("_"):
                    points.append(((name, step), value))
        elif kinds[-1] == "summary":
            summary = {item.key: json.loads(item.value_json) for item in record.summary.update}
    assert numbers == list(range(1, len(numbers) + 1)), numbers
    assert kinds[0] == "run" and kinds[-3:] == ["summary", "exit", "final"] and kinds.count("exit") == 1, kinds
    points = once("wandb", points)
    compare("wandb", points, expected(), 0)
    assert texts == {row["step"]: text_of(row["step"]) for row in rows if "eval" not in row}, texts
    assert ("weights/norm.weight", 2) in histograms
    assert summary["_step"] == rows[-1]["step"] and summary["loss"] == [row["loss"] for row in rows if "loss" in row][-1], summary
    return len(points)


def read_mlflow():
    from mlflow.store.tracking.file_store import FileStore

    store = FileStore(os.path.join(run, "mlruns"))
    assert [experiment.name for experiment in store.search_experiments()] == ["Default"]
    found = store.search_runs(["0"], "", 1)
    assert len(found) == 1, found
    one = store.get_run(found[0].info.run_id)
    assert one.info.status == "FINISHED" and one.data.params["optimizer.name"] == "adamw", one
    points = once("mlflow", (((name, point.step), point.value) for name in one.data.metrics
                             for point in store.get_metric_history(one.info.run_id, name)))
    compare("mlflow", points, {(name.replace("/", "."), step): value for (name, step), value in expected().items()}, 0)
    return len(points)


print("tensorboard %d, wandb %d, mlflow %d read" % (read_tensorboard(), read_wandb(), read_mlflow()))
