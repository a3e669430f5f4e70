"""All that the recording imports of the product: a training that never ran, and the routes of the console."""

from uuid import uuid4

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import LabeledLogits
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.store import Store
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service.application import create_application
from tests.behaviour import inputs
from tests.unit.develop.training.results import make_result


def add_training() -> None:
    """Add the model net@1 with the facts, the recipe and the report of its training, without days of training."""
    recipe = Recipe.model_validate(inputs.RECIPE)
    with Store.from_settings(Settings.load()) as store:
        model = store.trainings.record(
            "skin",
            "net",
            onnx=b"graph",
            preprocessing=Preprocessing(),
            recipe=recipe,
            result=make_result(recipe).to_json().encode(),
            calibration=LabeledLogits(*inputs.draw(inputs.BALANCED, 300, 7)),
            test_set=b"test",
            job_id=uuid4(),
            actor="ann",
        )
        store.trainings.put_report(
            model.reference, test_set=b"both", report=b"{}", page=b"<h1>Promotion</h1>", actor="ann"
        )


def console_routes() -> list[tuple[str, str]]:
    """Method and path template of the pages and forms of the console."""
    routes = create_application(Settings.load()).routes
    return [
        (method, route.path)
        for route in routes
        for method in sorted(getattr(route, "methods", ()))
        if getattr(route, "path", "").startswith("/console")
    ]
