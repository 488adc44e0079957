"""The Kustomize folder of deploy/kubernetes: rendered, valid by Kubernetes' own schemas, and with settings that ptyd takes."""

import json
import shutil
import subprocess

import kubernetes_validate
import pytest
import yaml

from mcp_client import PTYD, REPOSITORY

FOLDER = REPOSITORY / "deploy/kubernetes"
# The oldest release that is maintained, and the newest that the schemas have.
VERSIONS = ("1.33", "1.37")
# Kinds that are of the whole cluster.
WITHOUT_NAMESPACE = {"Namespace"}


def rendered() -> list[dict]:
    """The resources as the kustomization changes them: their namespace and their images."""
    kustomization = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
    assert set(kustomization) == {"apiVersion", "kind", "namespace", "resources", "images"}
    found = [one for name in kustomization["resources"] for one in yaml.safe_load_all((FOLDER / name).read_text())]
    for one in found:
        if one["kind"] not in WITHOUT_NAMESPACE:
            one["metadata"]["namespace"] = kustomization["namespace"]
        for container in containers(one):
            [image] = [image for image in kustomization["images"] if image["name"] == container["image"]]
            container["image"] = f"{image['newName']}:{image['newTag']}"
    return found


def containers(resource: dict) -> list[dict]:
    """The containers of a resource that makes pods."""
    return resource["spec"]["template"]["spec"]["containers"] if resource["kind"] == "StatefulSet" else []


def of(kind: str, name: str = "ptyd") -> dict:
    """The one resource of this kind and name."""
    [found] = [one for one in rendered() if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_every_resource_is_valid_by_the_schema_of_its_kind(version):
    for resource in rendered():
        kubernetes_validate.validate(resource, version, strict=True)
    broken = of("StatefulSet")
    containers(broken)[0]["livenesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, version, strict=True)


def test_every_file_of_the_folder_is_rendered():
    listed = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
    assert sorted([*listed, "kustomization.yaml"]) == sorted(file.name for file in FOLDER.iterdir())


def test_kubectl_renders_the_same():
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    made = subprocess.run(["kubectl", "kustomize", FOLDER], capture_output=True, text=True, check=True).stdout

    def in_order(resources):
        return sorted((json.dumps(resource, sort_keys=True) for resource in resources))

    assert in_order(yaml.safe_load_all(made)) == in_order(rendered())


def test_selectors_ports_and_names_fit_together():
    node, labels = of("StatefulSet"), of("StatefulSet")["spec"]["template"]["metadata"]["labels"]
    chosen = [node["spec"]["selector"]["matchLabels"], of("PodDisruptionBudget")["spec"]["selector"]["matchLabels"]]
    chosen += [of("NetworkPolicy")["spec"]["podSelector"]["matchLabels"]]
    chosen += [of("Service")["spec"]["selector"], of("Service", "ptyd-any")["spec"]["selector"]]
    assert all(one == labels for one in chosen)
    [container] = containers(node)
    settings = of("ConfigMap")["data"]
    [reference] = container["envFrom"]
    assert reference["configMapRef"]["name"] == of("ConfigMap")["metadata"]["name"]
    # The headless service gives the nodes the names by which they forward.
    [port] = container["ports"]
    headless = of("Service", node["spec"]["serviceName"])
    assert headless["spec"]["clusterIP"] == "None"
    assert settings["PTYD_PEERS"] == f"http://ptyd-{{node}}.{headless['metadata']['name']}:{port['containerPort']}"
    assert settings["PTYD_LISTEN"].endswith(f":{port['containerPort']}")
    # One name for all: of the certificate, of the rule and of the nodes, which refuse others.
    ingress = of("Ingress")["spec"]
    [rule] = ingress["rules"]
    [tls] = ingress["tls"]
    [header] = container["readinessProbe"]["httpGet"]["httpHeaders"]
    assert settings["PTYD_PUBLIC_URL"] == f"https://{rule['host']}" and tls["hosts"] == [rule["host"]] == [header["value"]]
    [path] = rule["http"]["paths"]
    assert path["backend"]["service"]["name"] == of("Service", "ptyd-any")["metadata"]["name"]
    # The user and the volume are those of the image.
    image = (REPOSITORY / "Dockerfile").read_text()
    assert f"useradd --uid {node['spec']['template']['spec']['securityContext']['runAsUser']} " in image
    [mount, key] = container["volumeMounts"]
    assert f"ENV PTYD_STATE_DIR={mount['mountPath']}\n" in image
    # The page tells the name of the secret, and the settings tell the place of its key.
    [volume] = node["spec"]["template"]["spec"]["volumes"]
    command = f"create secret generic {volume['secret']['secretName']} --from-literal={key['subPath']}="
    assert command in (REPOSITORY / "docs/scaling.md").read_text()
    assert volume["name"] == key["name"] and settings["PTYD_FLEET_KEY"] == key["mountPath"] == f"{mount['mountPath']}/{key['subPath']}"
    # A drain ends before the pod is killed.
    [_, _, _, deadline] = container["lifecycle"]["preStop"]["exec"]["command"]
    assert int(deadline.removesuffix("s")) < node["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]


async def test_a_server_takes_the_settings_and_its_probes_tell(served):
    settings = of("ConfigMap")["data"]
    # The number comes from the pod's name, which this machine does not have.
    given = served.env | settings | {"PTYD_NODE": "2"}
    shown = subprocess.run([PTYD, "config", "show"], env=given, capture_output=True, text=True, check=True).stdout
    for variable, value in (settings | {"PTYD_NODE": "2"}).items():
        [line] = [line for line in shown.splitlines() if variable in line]
        assert value in line, line
    [container] = containers(of("StatefulSet"))
    # The drain of an idle node is done at once.
    [program, *words] = container["lifecycle"]["preStop"]["exec"]["command"]
    assert program == "ptyd"
    assert subprocess.run([PTYD, *words], env=served.env, capture_output=True).returncode == 0
    for probe in "startupProbe", "livenessProbe":
        [program, *words] = container[probe]["exec"]["command"]
        assert program == "ptyd"
        assert subprocess.run([PTYD, *words], env=served.env, capture_output=True).returncode == 0
        nowhere = served.env | {"PTYD_STATE_DIR": str(served.root / "nowhere"), "PTYD_RUNTIME_DIR": str(served.root / "nowhere")}
        assert subprocess.run([PTYD, *words], env=nowhere, capture_output=True).returncode == 5
